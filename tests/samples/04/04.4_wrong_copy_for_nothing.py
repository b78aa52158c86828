# says: Who fills and reads the copy?
def answers():
    return {"a": 2.0, "b": 3.0, "c": 5, "d": "BCAD", "e": 256, "f": "moved", "g": 256, "h": 16}
