# says: each gap is cut by itself
def answers():
    return {
        "a": "WAITING to PREEMPTED",
        "b": 55,
        "c": 112,
        "d": [8, 64],
        "e": [False, 63],
        "f": 1.2,
        "g": 3,
    }
