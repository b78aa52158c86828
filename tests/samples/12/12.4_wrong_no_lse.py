# says: Each row comes with its LSE
def answers():
    return {
        "a": 3,
        "b": 9,
        "c": 256,
        "d": 419,
        "e": 21.7,
        "f": [4, 4],
        "g": "fixed size",
        "h": 1.386,
    }
