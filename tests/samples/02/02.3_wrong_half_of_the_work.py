# says: This is the search alone
def answers():
    """Your answers by letter: a list for a, numbers for b to e, words for f and g."""
    return {"a": [2, 6], "b": 8191, "c": 4096, "d": 2, "e": 5, "f": "raise", "g": "remove"}
