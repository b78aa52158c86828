# says: The table was not asked
def answers():
    return {"a": 70, "b": 20, "c": 752, "d": [0, 1], "e": "TLB", "f": 131072, "g": [480, 30], "h": [0, 12, 108], "i": 2332042}
