# says: as if both halves weighed the same
import math


def merge(a, b):
    return [(x + y) / 2 for x, y in zip(a[0], b[0])], math.log(math.exp(a[1]) + math.exp(b[1]))
