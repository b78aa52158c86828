# says: passed over 8 times, and then
def answers():
    return {"a": 32, "b": 5, "c": [8, 4], "d": [2, 4, 3, 1, 0], "e": [10, 5], "f": 9}
