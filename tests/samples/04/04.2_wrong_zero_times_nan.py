# says: 0 times NaN is NaN
import math


def merge(a, b):
    top = max(a[1], b[1])
    if top == -math.inf:
        return [0.0] * len(a[0]), top
    one, other = math.exp(a[1] - top), math.exp(b[1] - top)
    mixed = [(x * one + y * other) / (one + other) for x, y in zip(a[0], b[0])]
    return mixed, top + math.log(one + other)
