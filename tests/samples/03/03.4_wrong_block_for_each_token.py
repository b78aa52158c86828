# says: With blocks of 16 most tokens find room
def answers():
    return {"a": 2822, "b": 20, "c": 752, "d": [0, 1], "e": "TLB", "f": 131072, "g": [480, 480], "h": [0, 12, 108], "i": 2332042}
