# says: Give per cent, not a fraction.
def answers():
    return {"a": 64, "b": 0.0741, "c": 9.8, "d": 32, "e": 63.5, "f": 6.67, "g": [9, 11, 12], "h": 42, "i": 0.96}
