# says: four steps are left
def answers():
    return {
        "a": "WAITING to PREEMPTED",
        "b": 55,
        "c": 112,
        "d": [8, 64],
        "e": [False, 62],
        "f": 1.25,
        "g": 3,
    }
