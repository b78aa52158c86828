# says: What do 64 FLOP a byte leave of 295
def answers():
    return {
        "a": 3,
        "b": 9,
        "c": 258,
        "d": 419,
        "e": 80,
        "f": [4, 4],
        "g": "fixed size",
        "h": 1.386,
    }
