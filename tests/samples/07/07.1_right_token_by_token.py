def chunks(prompt_len, budget, decodes_left):
    """Hand the budget out one by one."""
    left, got = dict(enumerate(decodes_left)), []
    while sum(got) < prompt_len:
        got.append(0)
        served = set()
        for _ in range(budget):
            number = next((n for n in left if n not in served), None)
            if number is not None:
                served.add(number)
            elif sum(got) < prompt_len:
                got[-1] += 1
        for number in served:
            left[number] -= 1
            if not left[number]:
                del left[number]
    return got
