# says: The exponential of each comes first
def stable_softmax(scores):
    return [score / sum(scores) for score in scores]
