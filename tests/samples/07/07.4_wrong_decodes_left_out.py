# says: The 32 decodes are in the step as well, a token each
def answers():
    return {
        "a": 410,
        "b": 35.6,
        "c": 17,
        "d": 1929,
        "e": "difference",
        "f": 597.2,
        "g": 4095,
        "h": [16, 8],
    }
