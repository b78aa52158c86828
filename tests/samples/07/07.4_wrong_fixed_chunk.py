# says: There is no fixed chunk
def answers():
    return {
        "a": 411.6,
        "b": 35.6,
        "c": 17,
        "d": 512,
        "e": "difference",
        "f": 597.2,
        "g": 4095,
        "h": [16, 8],
    }
