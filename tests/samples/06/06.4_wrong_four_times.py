# says: Most of it is no decode step
def answers():
    return {
        "a": "WAITING to PREEMPTED",
        "b": 55,
        "c": 112,
        "d": [8, 64],
        "e": [False, 62],
        "f": 4,
        "g": 3,
    }
