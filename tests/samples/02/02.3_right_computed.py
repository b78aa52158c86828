def answers():
    queue = [2, 6, 7]
    length = 8192
    held = set("abcde") | set("abcxy")
    first = {"a": queue[:2], "b": length - 1, "c": sum([5, length - 5])}
    return first | {"d": 3 + 1 - 2, "e": 12 - len(held), "f": "raise", "g": "remove"}
