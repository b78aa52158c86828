# says: max_num_seqs is a limit beside the memory
def answers():
    return {
        "a": [2400, 900],
        "b": [8, "kept"],
        "c": ["Llama-2-7B", "Llama-2-13B"],
        "d": 307.2,
        "e": [256, 25],
        "f": "hold",
        "g": ["recompute", "swap"],
        "h": 201,
    }
