import math


def answers():
    sums = [
        sum(map(math.exp, block))
        for block in ([math.log(2), math.log(4)], [math.log(8), math.log(2)])
    ]
    shares = [3 / 4, 1 / 4]
    return {
        "a": sum(sums) / math.exp(math.log(8)),
        "b": sum(share * output for share, output in zip(shares, (2, 6))),
        "c": suspect([0], [[1, 2, 3]], [[3, 5, 10]], sequence=0, threads=2),
        "d": "BCAD",
        "e": sum(32 * 2 * 8 * 128 * 2 for token in range(2048)) / 2**20,
        "f": "moved",
        "g": sum([256, 256, 256]),
        "h": sum(4 for layer in range(32) for block in range(0, 2048, 16)) / 1024,
    }
