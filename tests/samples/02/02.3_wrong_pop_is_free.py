# says: A list has no gap at its front
def answers():
    """Your answers: {"a": a list, "b": a number, "c": ..., "d": ..., "e": ..., "f": a word}."""
    return {"a": [2, 6], "b": 0, "c": 8192, "d": 2, "e": 5, "f": "raise"}
