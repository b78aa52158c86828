# says: Most of it is the prompt's step
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
