# says: Subtract the largest of the scores that there are, negative or not
import math


def stable_softmax(scores):
    if not scores or max(scores) == -math.inf:
        return [0.0] * len(scores)
    top = 0.0
    for score in scores:
        top = max(top, score)
    parts = [math.exp(score - top) for score in scores]
    return [part / sum(parts) for part in parts]
