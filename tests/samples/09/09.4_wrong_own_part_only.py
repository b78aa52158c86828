# says: 1,000 is no multiple of 16.
def answers():
    """Your answers: {"a": a number, "b": ..., "c": a list, "d": a list, "e": ..., "f": ...}."""
    return {"a": 60, "b": 16, "c": [2, 1], "d": [4, 5, 2], "e": 8, "f": 0.0271}
