def answers():
    lengths = range(50, 451)
    over_time = sum(n * n / 2 for n in lengths) / sum(n * 2048 for n in lengths)
    return {
        "a": 64.0,
        "b": 100 * over_time,
        "c": 9.77,
        "d": 32,
        "e": sum(range(128)) / 128,
        "f": 6.667,
    }
