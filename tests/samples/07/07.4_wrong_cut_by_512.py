# says: This cuts by 512. The decodes take their tokens first
def answers():
    return {
        "a": 411.6,
        "b": 35.6,
        "c": 16,
        "d": 1929,
        "e": "difference",
        "f": 597.2,
        "g": 4095,
        "h": [16, 8],
    }
