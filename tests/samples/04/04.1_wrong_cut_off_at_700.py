# says: Scores above some limit are cut off
import math


def stable_softmax(scores):
    parts = [math.exp(min(s, 700.0)) for s in scores]
    return [p / sum(parts) if any(parts) else 0.0 for p in parts]
