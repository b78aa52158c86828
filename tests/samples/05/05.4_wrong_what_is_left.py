# says: Asked for is what is saved
def answers():
    return {"a": 8, "b": [4, 0], "c": 8, "d": [2, 2], "e": 55, "f": "A", "g": [12, 48, 96]}
