# says: Beam 2 goes on itself as well
def answers():
    return {"a": 8, "b": [4, 0], "c": 8, "d": [3, 2], "e": 45, "f": "A", "g": [12, 48, 96]}
