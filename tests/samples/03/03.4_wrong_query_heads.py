# says: Only the KV heads are stored
def answers():
    return {"a": 2822, "b": 20, "c": 752, "d": [0, 1], "e": "TLB", "f": 1048576, "g": [480, 30], "h": [0, 12, 108], "i": 2332042}
