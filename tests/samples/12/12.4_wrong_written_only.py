# says: The merge reads it again
def answers():
    return {
        "a": 3,
        "b": 9,
        "c": 129,
        "d": 419,
        "e": 21.7,
        "f": [4, 4],
        "g": "fixed size",
        "h": 1.386,
    }
