# says: The last block holds at least one token
def answers():
    return {"a": 64, "b": 7.41, "c": 9.8, "d": 32, "e": 64, "f": 6.67, "g": [9, 11, 12], "h": 42, "i": 0.96}
