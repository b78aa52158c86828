# says: it does not become WAITING first
def answers():
    return {
        "a": "PREEMPTED to RUNNING",
        "b": 55,
        "c": 112,
        "d": [8, 64],
        "e": [False, 62],
        "f": 1.2,
        "g": 3,
    }
