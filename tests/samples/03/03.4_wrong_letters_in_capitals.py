# says: has no entry 'a'
def answers():
    return {"A": 2822, "B": 20, "C": 752, "D": [0, 1], "E": "TLB", "F": 131072}
