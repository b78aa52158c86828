# says: The last step is not a full one
def answers():
    return {
        "a": 411.6,
        "b": 35.6,
        "c": 17,
        "d": 1929,
        "e": "difference",
        "f": 605.2,
        "g": 4095,
        "h": [16, 8],
    }
