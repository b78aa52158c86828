# says: not until C
def answers():
    return {
        "a": "WAITING to PREEMPTED",
        "b": 55,
        "c": 32,
        "d": [8, 64],
        "e": [False, 62],
        "f": 1.2,
        "g": 3,
    }
