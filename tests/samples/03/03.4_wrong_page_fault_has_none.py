# says: a further block is allocated when the last one is full
def answers():
    return {"a": 2822, "b": 20, "c": 752, "d": [0, 1], "e": "page fault", "f": 131072, "g": [480, 30], "h": [0, 12, 108], "i": 2332042}
