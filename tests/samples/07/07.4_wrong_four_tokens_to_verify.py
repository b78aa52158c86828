# says: Each of the three verifies 4 guesses and computes its own next token
def answers():
    return {
        "a": 411.6,
        "b": 35.6,
        "c": 17,
        "d": 1932,
        "e": "difference",
        "f": 597.2,
        "g": 4095,
        "h": [16, 8],
    }
