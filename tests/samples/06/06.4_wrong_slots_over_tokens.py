# says: The last block of each is begun and not full
def answers():
    return {
        "a": "WAITING to PREEMPTED",
        "b": 55,
        "c": 112,
        "d": [8, 65],
        "e": [False, 62],
        "f": 1.2,
        "g": 3,
    }
