# says: each table keeps its own
def answers():
    return {"a": 32, "b": 5, "c": [8, 4], "d": [2, 4, 3, 1, 0], "e": [5, 5], "f": 8}
