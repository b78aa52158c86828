# says: This is the share that is used
def answers():
    return {
        "a": "WAITING to PREEMPTED",
        "b": 45,
        "c": 112,
        "d": [8, 64],
        "e": [False, 62],
        "f": 1.2,
        "g": 3,
    }
