# says: A masked key's weight is 0
import math


def stable_softmax(scores):
    scores = [s for s in scores if s != -math.inf]
    if not scores:
        return []
    top = max(scores)
    parts = [math.exp(score - top) for score in scores]
    return [part / sum(parts) for part in parts]
