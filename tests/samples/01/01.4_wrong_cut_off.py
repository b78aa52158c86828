# says: round up, do not cut off
def answers():
    return {"a": 64, "b": 7.41, "c": 9.7, "d": 32, "e": 63.5, "f": 6.67, "g": [9, 11, 12], "h": 42, "i": 0.96}
