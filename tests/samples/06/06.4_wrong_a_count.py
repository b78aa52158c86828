# says: Asked for is their share, in per cent
def answers():
    return {
        "a": "WAITING to PREEMPTED",
        "b": 440,
        "c": 112,
        "d": [8, 64],
        "e": [False, 62],
        "f": 1.2,
        "g": 3,
    }
