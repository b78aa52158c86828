# says: Alone it has the whole budget
def answers():
    return {
        "a": 411.6,
        "b": 35.6,
        "c": 17,
        "d": 1929,
        "e": "difference",
        "f": 597.2,
        "g": 4095,
        "h": [16, 16],
    }
