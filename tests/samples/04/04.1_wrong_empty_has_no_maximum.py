# says: An empty list has no largest entry
import math


def stable_softmax(scores):
    top = max(scores)
    if top == -math.inf:
        return [0.0] * len(scores)
    parts = [math.exp(score - top) for score in scores]
    return [part / sum(parts) for part in parts]
