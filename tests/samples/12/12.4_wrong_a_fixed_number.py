# says: a longer neighbour makes the pieces larger
def answers():
    return {
        "a": 3,
        "b": 9,
        "c": 258,
        "d": 419,
        "e": 21.7,
        "f": [4, 4],
        "g": "fixed number",
        "h": 1.386,
    }
