# says: What is left to go wrong?
def answers():
    return {"a": 2.0, "b": 3.0, "c": 5, "d": "DCAB", "e": 256, "f": "moved", "g": 768, "h": 16}
