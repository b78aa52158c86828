# says: That is an entry for each token
def answers():
    return {"a": 2822, "b": 20, "c": 24000, "d": [0, 1], "e": "TLB", "f": 131072, "g": [480, 30], "h": [0, 12, 108], "i": 2332042}
