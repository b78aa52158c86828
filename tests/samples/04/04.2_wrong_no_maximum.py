# says: Subtract the larger LSE from both before the exponential
import math


def merge(a, b):
    if a[1] == -math.inf and b[1] == -math.inf:
        return [0.0] * len(a[0]), -math.inf
    if a[1] == -math.inf:
        return b
    if b[1] == -math.inf:
        return a
    one, other = math.exp(a[1]), math.exp(b[1])
    mixed = [(x * one + y * other) / (one + other) for x, y in zip(a[0], b[0])]
    return mixed, math.log(one + other)
