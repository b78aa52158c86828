# says: That is the mean over all lengths
def answers():
    return {"a": 2822, "b": 20, "c": 752, "d": [0, 1], "e": "TLB", "f": 131072, "g": [480, 30], "h": [1.5, 7.5, 63.5], "i": 2332042}
