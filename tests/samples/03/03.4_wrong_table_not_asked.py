# says: The table was not asked
def answers():
    return {"a": 70, "b": 20, "c": 1024, "d": [0, 1], "e": "TLB", "f": 65536}
