# says: The shared blocks are counted twice
def answers():
    """Your answers by letter: a list for a, numbers for b to e, words for f and g."""
    return {"a": [2, 6], "b": 8191, "c": 8192, "d": 2, "e": 2, "f": "raise", "g": "remove"}
