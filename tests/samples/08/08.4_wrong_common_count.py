# says: B's own count is 0
def answers():
    return {
        "a": [2400, 900],
        "b": [8, "kept"],
        "c": ["Llama-2-7B", "Llama-2-13B"],
        "d": 307.2,
        "e": [100, 25],
        "f": "hold",
        "g": ["recompute", "recompute"],
        "h": 201,
    }
