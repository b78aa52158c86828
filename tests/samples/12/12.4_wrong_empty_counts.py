# says: e to the -inf is 0
def answers():
    return {
        "a": 3.25,
        "b": 9,
        "c": 258,
        "d": 419,
        "e": 21.7,
        "f": [4, 4],
        "g": "fixed size",
        "h": 1.386,
    }
