# says: That is an entry for each token
def answers():
    return {"a": 2822, "b": 20, "c": 16384, "d": [0, 1], "e": "TLB", "f": 65536}
