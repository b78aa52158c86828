# says: The last one in the list that fits was taken
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
            fitting.append(budget)
    return fitting[-1] if fitting else 0
