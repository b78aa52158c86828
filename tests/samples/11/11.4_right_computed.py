def answers():
    slots = [block * 16 + slot for block in (12, 3, 40) for slot in range(16)]
    rows = {3: 16, 8: 16, 24: 32}
    return {
        "a": slots[20] * 1024 + 2 * 128 + 5,
        "b": 3 * 16_384 + 2 * 16 * 128 + 4 * 8 + 5,
        "c": (196_608 * 16_384 + 2**31) % 2**32 - 2**31,
        "d": [heads * 1000 * 128 * 2 * 2 for heads in (32, 8)],
        "e": [rows[group] for group in (3, 8, 24)],
        "f": [16 * 8, 32 // 8, 8 * 256],
        "g": (1 - 40 / 128) * 100,
        "h": "out",
    }
