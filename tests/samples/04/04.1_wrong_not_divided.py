# says: Weights add up to 1: divide each by their sum
import math


def stable_softmax(scores):
    top = max(scores, default=0.0)
    return [math.exp(s - top) for s in scores]
