# says: The offset was added to the number of the block
def answers():
    return {"a": 94, "b": 20, "c": 1024, "d": [0, 1], "e": "TLB", "f": 65536}
