# says: is missing in the LSE: add it again
import math


def merge(a, b):
    halves = [half for half in (a, b) if half[1] > -math.inf]
    if not halves:
        return [0.0] * len(a[0]), -math.inf
    top = max(lse for _, lse in halves)
    weights = [math.exp(lse - top) for _, lse in halves]
    total = sum(weights)
    columns = zip(*(output for output, _ in halves))
    return [sum(w * x for w, x in zip(weights, c)) / total for c in columns], math.log(total)
