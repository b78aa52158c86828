# says: in use, below too
def answers():
    return {"a": 32, "b": 5, "c": [3, 9], "d": [2, 4, 3, 1, 0], "e": [10, 5], "f": 8}
