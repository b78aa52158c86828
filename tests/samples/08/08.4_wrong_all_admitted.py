# says: max_num_seqs is a limit beside the memory
def answers():
    return {
        "a": [3000, 400],
        "b": [8, "kept"],
        "c": ["Llama-2-7B"],
        "d": 335.5,
        "e": [256, 25],
        "f": "hold",
        "g": ["recompute", "swap"],
        "h": 201,
    }
