# says: is a `return` missing?
import math


def stable_softmax(scores):
    top = max(scores)
    e = [math.exp(s - top) for s in scores]
    w = [x / sum(e) for x in e]
