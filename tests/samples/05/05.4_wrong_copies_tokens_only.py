# says: A copy moves the whole block
def answers():
    return {"a": 8, "b": [4, 0], "c": 1, "d": [2, 2], "e": 45, "f": "A", "g": [12, 48, 96]}
