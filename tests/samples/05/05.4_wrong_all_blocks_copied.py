# says: Only the one that is written has to be copied
def answers():
    return {"a": 8, "b": [4, 0], "c": 8, "d": [2, 2], "e": 45, "f": "A", "g": [312, 336, 384]}
