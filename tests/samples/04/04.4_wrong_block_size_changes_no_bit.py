# says: the rounding is another one
def answers():
    return {"a": 2.0, "b": 3.0, "c": 5, "d": "BCAD", "e": 256, "f": "resized", "g": 768, "h": 16}
