# says: This is one way. It has to come back
def answers():
    return {
        "a": [2400, 900],
        "b": [8, "kept"],
        "c": ["Llama-2-7B", "Llama-2-13B"],
        "d": 153.6,
        "e": [100, 25],
        "f": "hold",
        "g": ["recompute", "swap"],
        "h": 201,
    }
