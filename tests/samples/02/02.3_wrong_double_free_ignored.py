# says: goes on unseen
def answers():
    """Your answers by letter: a list for a, numbers for b to e, words for f and g."""
    return {"a": [2, 6], "b": 8191, "c": 8192, "d": 2, "e": 5, "f": "ignore", "g": "remove"}
