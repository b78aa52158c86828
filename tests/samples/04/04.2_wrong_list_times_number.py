# says: an output, which is a list of numbers
import math


def merge(a, b):
    top = max(a[1], b[1])
    one, other = math.exp(a[1] - top), math.exp(b[1] - top)
    return (a[0] * one + b[0] * other) / (one + other), top + math.log(one + other)
