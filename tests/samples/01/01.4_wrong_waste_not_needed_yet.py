# says: but it is needed
def answers():
    return {"a": 64, "b": 7.41, "c": 9.8, "d": 32, "e": 63.5, "f": 6.67, "g": [20, 0, 12], "h": 42, "i": 0.96}
