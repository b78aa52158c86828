# says: nothing would be left to compute
def answers():
    return {"a": 48, "b": 5, "c": [8, 4], "d": [2, 4, 3, 1, 0], "e": [10, 5], "f": 8}
