# says: Compute with its numbers one by one
import math


def stable_softmax(scores):
    top = max(scores, default=0.0)
    parts = math.exp(scores - top)
    return parts / sum(parts)
