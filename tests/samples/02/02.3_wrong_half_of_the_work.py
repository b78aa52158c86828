# says: This is the search alone
def answers():
    """Your answers: {"a": a list, "b": a number, "c": ..., "d": ..., "e": ..., "f": a word}."""
    return {"a": [2, 6], "b": 8191, "c": 4096, "d": 2, "e": 5, "f": "raise"}
