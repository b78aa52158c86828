# says: leaves none behind
def answers():
    return {"a": 9, "b": [4, 0], "c": 8, "d": [2, 2], "e": 45, "f": "A", "g": [12, 48, 96]}
