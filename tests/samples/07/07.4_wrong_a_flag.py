# says: A flag would have to be kept right
def answers():
    return {
        "a": 411.6,
        "b": 35.6,
        "c": 17,
        "d": 1929,
        "e": "flag",
        "f": 597.2,
        "g": 4095,
        "h": [16, 8],
    }
