def answers():
    per_byte = {
        "Llama-2-7B": 6.738e9 / 524_288,
        "Llama-3-8B": 8.030e9 / 131_072,
        "Llama-3-70B": 70.554e9 / 327_680,
    }
    return {
        "a": [3000, 400],
        "b": [5 + 3, "kept"],
        "c": [name for name, ratio in per_byte.items() if ratio < 500e12 / 32e9],
        "d": 1e3 * 2 * 16_384 * 327_680 / 32e9,
        "e": [1000 // -(-160 // 16), 1000 // -(-640 // 16)],
        "f": "hold",
        "g": ["recompute", "swap"],
        "h": min(1000, 4096 - 3000, 200 * 16 - 3000 + 1),
    }
