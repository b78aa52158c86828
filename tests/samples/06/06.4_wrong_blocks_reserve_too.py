# says: takes a block when it needs it
def answers():
    return {
        "a": "WAITING to PREEMPTED",
        "b": 55,
        "c": 112,
        "d": [8, 8],
        "e": [False, 62],
        "f": 1.2,
        "g": 3,
    }
