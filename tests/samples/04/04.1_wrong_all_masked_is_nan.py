# says: If no key may be read, the largest score is -inf
import math


def stable_softmax(scores):
    if not scores:
        return []
    top = max(scores)
    parts = [math.exp(score - top) for score in scores]
    return [part / sum(parts) for part in parts]
