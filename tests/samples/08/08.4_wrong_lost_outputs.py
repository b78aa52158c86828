# says: The outputs are known tokens
def answers():
    return {
        "a": [3000, 400],
        "b": [8, "lost"],
        "c": ["Llama-2-7B"],
        "d": 335.5,
        "e": [100, 25],
        "f": "hold",
        "g": ["recompute", "swap"],
        "h": 201,
    }
