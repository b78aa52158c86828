# says: nobody overwrites it there
def answers():
    return {"a": 8, "b": [4, 0], "c": 8, "d": [2, 2], "e": 45, "f": "B", "g": [12, 48, 96]}
