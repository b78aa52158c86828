def answers():
    def cost(prompt, n):
        return (n - 1 if prompt % 16 else 0), prompt // 16 + n

    parents = [2, 0, 2, 2]
    slots = 100 + 50 - 1
    alone = 4 * -(-slots // 16)
    shared = 100 // 16 + 4 * (-(-slots // 16) - 100 // 16)
    return {
        "a": cost(50, 5)[1],
        "b": [cost(50, 5)[0], cost(48, 5)[0]],
        "c": cost(50, 5)[0] * 16 * 131072 / 1024 / 1024,
        "d": [len(parents) - len(set(parents)), len(set(range(4)) - set(parents))],
        "e": 100 * (alone - shared) / alone,
        "f": "A",
        "g": [size * ((4 - 1) if 101 % size else 0) for size in (4, 16, 32)],
    }
