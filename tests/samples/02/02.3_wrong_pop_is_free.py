# says: A list has no gap at its front
def answers():
    """Your answers by letter: a list for a, numbers for b to e, words for f and g."""
    return {"a": [2, 6], "b": 0, "c": 8192, "d": 2, "e": 5, "f": "raise", "g": "remove"}
