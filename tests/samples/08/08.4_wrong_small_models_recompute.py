# says: The size of a model does not decide
def answers():
    return {
        "a": [3000, 400],
        "b": [8, "kept"],
        "c": ["Llama-2-7B", "Llama-3-8B"],
        "d": 335.5,
        "e": [100, 25],
        "f": "hold",
        "g": ["recompute", "swap"],
        "h": 201,
    }
