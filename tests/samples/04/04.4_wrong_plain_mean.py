# says: The halves do not weigh the same
def answers():
    return {"a": 2.0, "b": 4.0, "c": 5, "d": "BCAD", "e": 256, "f": "moved", "g": 768, "h": 16}
