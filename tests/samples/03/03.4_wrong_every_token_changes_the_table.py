# says: most of them find room in the last block
def answers():
    return {"a": 2822, "b": 20, "c": 752, "d": [1, 1], "e": "TLB", "f": 131072, "g": [480, 30], "h": [0, 12, 108], "i": 2332042}
