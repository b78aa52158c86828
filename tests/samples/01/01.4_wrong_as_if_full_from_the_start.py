# says: While it grows it uses half of that
def answers():
    return {"a": 64, "b": 12.21, "c": 9.8, "d": 32, "e": 63.5, "f": 6.67, "g": [9, 11, 12], "h": 42, "i": 0.96}
