# says: two were asked for
def answers():
    return {
        "a": 3,
        "b": 5,
        "c": 258,
        "d": 419,
        "e": 21.7,
        "f": [4, 4],
        "g": "fixed size",
        "h": 1.386,
    }
