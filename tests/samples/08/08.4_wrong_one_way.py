# says: This is one way. It has to come back
def answers():
    return {
        "a": [3000, 400],
        "b": [8, "kept"],
        "c": ["Llama-2-7B"],
        "d": 167.8,
        "e": [100, 25],
        "f": "hold",
        "g": ["recompute", "swap"],
        "h": 201,
    }
