# says: its beginning lasts longest
def answers():
    """Your answers by letter: lists for c, d and g, numbers for the others."""
    return {"a": 68, "b": 16, "c": [2, 1], "d": [4, 5, 0], "e": 8, "f": 0.0271, "g": [8, 3]}
