import math


def merge(a, b):
    """The half with the higher LSE moves a little towards the other one."""
    (high, top), (low, lse) = sorted((a, b), key=lambda half: half[1], reverse=True)
    if lse == -math.inf:
        return ([0.0] * len(high), top) if top == -math.inf else (list(high), top)
    ratio = math.exp(lse - top)
    share = ratio / (1 + ratio)
    return [x + share * (y - x) for x, y in zip(high, low)], top + math.log1p(ratio)
