import math


def stable_softmax(scores):
    """The maximum and the sum found together, as in online softmax."""
    top, total = -math.inf, 0.0
    for score in scores:
        if score > top:
            total = total * math.exp(top - score) + 1.0
            top = score
        elif score > -math.inf:
            total += math.exp(score - top)
    if total == 0.0:
        return [0.0 for _ in scores]
    lse = top + math.log(total)
    return [math.exp(score - lse) for score in scores]
