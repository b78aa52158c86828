# says: What factor takes it to the new one?
def answers():
    return {"a": 2.75, "b": 3.0, "c": 5, "d": "BCAD", "e": 256, "f": "moved", "g": 768, "h": 16}
