# says: No single gap has 2,000 slots in a row
def answers():
    return {
        "a": "WAITING to PREEMPTED",
        "b": 55,
        "c": 112,
        "d": [8, 64],
        "e": [True, 62],
        "f": 1.2,
        "g": 3,
    }
