# says: The weights have changed places
import math


def merge(a, b):
    top = max(a[1], b[1])
    one, other = math.exp(a[1] - top), math.exp(b[1] - top)
    mixed = [(x * other + y * one) / (one + other) for x, y in zip(a[0], b[0])]
    return mixed, top + math.log(one + other)
