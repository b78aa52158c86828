# says: round down
def answers():
    return {"a": 64, "b": 7.41, "c": 9.8, "d": 33, "e": 63.5, "f": 6.67}
