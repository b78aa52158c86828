# says: The tail is known
def answers():
    return {"a": [2, 6], "b": 8191, "c": 8192, "d": 2, "e": 5, "f": "raise", "g": "append"}
