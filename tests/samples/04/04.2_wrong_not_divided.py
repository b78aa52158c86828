# says: The weights do not add up to 1
import math


def merge(a, b):
    one, other = math.exp(a[1]), math.exp(b[1])
    return [x * one + y * other for x, y in zip(a[0], b[0])], math.log(one + other)
