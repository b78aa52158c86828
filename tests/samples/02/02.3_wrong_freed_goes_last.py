# says: This hands out the freed block last
def answers():
    """Your answers by letter: a list for a, numbers for b to e, words for f and g."""
    return {"a": [6, 7], "b": 8191, "c": 8192, "d": 2, "e": 5, "f": "raise", "g": "remove"}
