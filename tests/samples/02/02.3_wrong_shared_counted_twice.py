# says: The shared blocks are counted twice
def answers():
    """Your answers: {"a": a list, "b": a number, "c": ..., "d": ..., "e": ..., "f": a word}."""
    return {"a": [2, 6], "b": 8191, "c": 8192, "d": 2, "e": 2, "f": "raise"}
