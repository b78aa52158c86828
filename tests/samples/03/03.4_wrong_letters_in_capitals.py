# says: has no entry 'a'
def answers():
    return {"A": 2822, "B": 20, "C": 752, "D": [0, 1], "E": "TLB", "F": 131072, "G": [480, 30], "H": [0, 12, 108], "I": 2332042}
