# says: With two empty halves there is nothing to subtract
import math


def merge(a, b):
    if a[1] == -math.inf:
        return b
    if b[1] == -math.inf:
        return a
    top = max(a[1], b[1])
    one, other = math.exp(a[1] - top), math.exp(b[1] - top)
    mixed = [(x * one + y * other) / (one + other) for x, y in zip(a[0], b[0])]
    return mixed, top + math.log(one + other)
