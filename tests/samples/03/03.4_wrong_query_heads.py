# says: Only the KV heads are stored
def answers():
    return {"a": 2822, "b": 20, "c": 1024, "d": [0, 1], "e": "TLB", "f": 262144}
