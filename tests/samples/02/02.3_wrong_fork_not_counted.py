# says: Was the fork counted?
def answers():
    """Your answers: {"a": a list, "b": a number, "c": ..., "d": ..., "e": ..., "f": a word}."""
    return {"a": [2, 6], "b": 8191, "c": 8192, "d": 1, "e": 5, "f": "raise"}
