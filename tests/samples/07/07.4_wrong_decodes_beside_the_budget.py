# says: The decodes are in the budget, not beside it
def answers():
    return {
        "a": 411.6,
        "b": 37.2,
        "c": 17,
        "d": 1929,
        "e": "difference",
        "f": 597.2,
        "g": 4095,
        "h": [16, 8],
    }
