# says: This is for 5 GB
def answers():
    return {
        "a": [3000, 400],
        "b": [8, "kept"],
        "c": ["Llama-2-7B"],
        "d": 312,
        "e": [100, 25],
        "f": "hold",
        "g": ["recompute", "swap"],
        "h": 201,
    }
