def answers():
    per_byte = {
        "Llama-2-7B": 6.738e9 / 524_288,
        "Llama-2-13B": 13.016e9 / 819_200,
        "Llama-3-8B": 8.030e9 / 131_072,
    }
    return {
        "a": [2400, 900],
        "b": [5 + 3, "kept"],
        "c": [name for name, ratio in per_byte.items() if ratio < 500e12 / 16e9],
        "d": 1e3 * 2 * 6_000 * 819_200 / 32e9,
        "e": [1000 // -(-160 // 16), 1000 // -(-640 // 16)],
        "f": "hold",
        "g": ["recompute", "swap"],
        "h": min(1000, 4096 - 3000, 200 * 16 - 3000 + 1),
    }
