import math


def answers():
    weights = [math.exp(lse) for lse in (math.log(3), 0, -math.inf)]
    key_flops, key_bytes = 32 * 2 * (128 + 128), 8 * (128 + 128) * 2
    return {
        "a": sum(w * read for w, read in zip(weights, (2, 6, 7), strict=True)) / sum(weights),
        "b": min(n for n in range(1, 100) if 4 * 8 * n >= 2 * 132),
        "c": 2 * 8 * 32 * (128 + 1) * 4 / 1024,
        "d": next(n for n in range(1000) if 2 * n / 362e12 >= 2 / 864e9),
        "e": 100 * 64 / (989e12 / 3350e9),
        "f": [key_flops // key_bytes, 64 * key_flops // (64 * key_bytes)],
        "g": "fixed size",
        "h": math.log(4 * math.e) - 1,
    }
