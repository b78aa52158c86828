# says: only holder by then
def answers():
    return {"a": 8, "b": [5, 0], "c": 8, "d": [2, 2], "e": 45, "f": "A", "g": [12, 48, 96]}
