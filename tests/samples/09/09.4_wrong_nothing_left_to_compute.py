# says: nothing says which token comes next
def answers():
    """Your answers: {"a": a number, "b": ..., "c": a list, "d": a list, "e": ..., "f": ...}."""
    return {"a": 68, "b": 0, "c": [2, 1], "d": [4, 5, 2], "e": 8, "f": 0.0271}
