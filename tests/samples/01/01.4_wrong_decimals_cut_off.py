# says: Work it out to three, then round.
def answers():
    return {"a": 64, "b": 7.41, "c": 9.8, "d": 32, "e": 63.5, "f": 6.6, "g": [9, 11, 12], "h": 42, "i": 0.96}
