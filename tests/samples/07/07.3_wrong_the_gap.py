# says: Return one of the budgets in the list, or 0
def choose_budget(budgets, prompt_len, contexts, limit):
    fitting = []
    for budget in budgets:
        room = budget - len(contexts)
        if room <= 0:
            continue
        times, start, number = [], 0, 0
        while start < prompt_len:
            number += 1
            end = min(start + room, prompt_len)
            read = sum(contexts) + number * len(contexts) + end
            times.append(step_seconds(len(contexts) + end - start, read))
            start = end
        if max(times) <= limit:
            fitting.append(int(1000 * max(times)))
    return max(fitting, default=0)
