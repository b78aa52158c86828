# says: B still holds 0 and 1
def answers():
    return {"a": 32, "b": 5, "c": [8, 4], "d": [2, 1, 0, 4, 3], "e": [10, 5], "f": 8}
