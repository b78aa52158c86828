# says: At 418
def answers():
    return {
        "a": 3,
        "b": 9,
        "c": 258,
        "d": 418,
        "e": 21.7,
        "f": [4, 4],
        "g": "fixed size",
        "h": 1.386,
    }
