from math import ceil


def answers():
    static, work = 4 * 200, 30 + 200 + 50 + 80
    gaps = [400, 1600, 1000]
    return {
        "a": "WAITING to PREEMPTED",
        "b": 100 * (static - work) / static,
        "c": 120 - 8,
        "d": [16384 // 2048, 16384 // 16 // ceil(250 / 16)],
        "e": [max(gaps) >= 2000, sum(gap // 16 for gap in gaps) - 2000 // 16],
        "f": (400 + 4 * 20) / 400,
        "g": min(4, 64 // 20, 100 // ceil(20 / 16)),
    }
