# says: The outputs are known tokens
def answers():
    return {
        "a": [2400, 900],
        "b": [8, "lost"],
        "c": ["Llama-2-7B", "Llama-2-13B"],
        "d": 307.2,
        "e": [100, 25],
        "f": "hold",
        "g": ["recompute", "swap"],
        "h": 201,
    }
