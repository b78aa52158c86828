# says: Nothing of them is shared
def answers():
    return {
        "a": 3,
        "b": 9,
        "c": 258,
        "d": 419,
        "e": 21.7,
        "f": [4, 256],
        "g": "fixed size",
        "h": 1.386,
    }
