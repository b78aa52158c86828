# says: without sharing. The full blocks
def answers():
    return {"a": 20, "b": [4, 0], "c": 8, "d": [2, 2], "e": 45, "f": "A", "g": [12, 48, 96]}
