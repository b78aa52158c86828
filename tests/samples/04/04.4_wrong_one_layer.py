# says: That is one layer
def answers():
    return {"a": 2.0, "b": 3.0, "c": 5, "d": "BCAD", "e": 8, "f": "moved", "g": 768, "h": 16}
