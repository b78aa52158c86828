# says: An LSE is a logarithm: the weight is its exponential
import math


def merge(a, b):
    total = a[1] + b[1]
    return [(x * a[1] + y * b[1]) / total for x, y in zip(a[0], b[0])], math.log(total)
