# says: Is a `return` missing?
import math


def merge(a, b):
    top = max(a[1], b[1])
    wa, wb = math.exp(a[1] - top), math.exp(b[1] - top)
    out = [(wa * x + wb * y) / (wa + wb) for x, y in zip(a[0], b[0])]
