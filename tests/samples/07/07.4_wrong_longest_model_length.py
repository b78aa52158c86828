# says: there is no room for an output
def answers():
    return {
        "a": 411.6,
        "b": 35.6,
        "c": 17,
        "d": 1929,
        "e": "difference",
        "f": 597.2,
        "g": 4096,
        "h": [16, 8],
    }
