# says: no exponent is above 0
import math


def stable_softmax(scores):
    real = [s for s in scores if s != -math.inf]
    if not real:
        return [0.0] * len(scores)
    middle = sum(real) / len(real)
    parts = [math.exp(s - middle) for s in scores]
    return [part / sum(parts) for part in parts]
