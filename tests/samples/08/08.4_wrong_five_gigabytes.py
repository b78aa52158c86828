# says: This is for 5 GB
def answers():
    return {
        "a": [2400, 900],
        "b": [8, "kept"],
        "c": ["Llama-2-7B", "Llama-2-13B"],
        "d": 312,
        "e": [100, 25],
        "f": "hold",
        "g": ["recompute", "swap"],
        "h": 201,
    }
