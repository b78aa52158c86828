# says: A user may go away before the turn
def answers():
    return {
        "a": "WAITING to FINISHED",
        "b": 55,
        "c": 112,
        "d": [8, 64],
        "e": [False, 62],
        "f": 1.2,
        "g": 3,
    }
