# says: That is the plain mean of all three
def answers():
    return {
        "a": 5,
        "b": 9,
        "c": 258,
        "d": 419,
        "e": 21.7,
        "f": [4, 4],
        "g": "fixed size",
        "h": 1.386,
    }
