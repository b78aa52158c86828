# says: What is there to copy
def answers():
    return {"a": 8, "b": [4, 4], "c": 8, "d": [2, 2], "e": 45, "f": "A", "g": [12, 48, 96]}
