def answers():
    shared = 1000 // 16 * 16
    pairs = 10**16 / 2**65
    return {
        "a": 1060 - shared,
        "b": 64 - 63 // 16 * 16,
        "c": [2, 1],
        "d": [4, 5, 2],
        "e": 9 - 1,
        "f": 100 * pairs,
    }
