# says: A budget that the decodes use up whole never gets the prompt computed
def choose_budget(budgets, prompt_len, contexts, limit):
    fitting = []
    for budget in budgets:
        room = budget - len(contexts)
        if room <= 0:
            if step_seconds(budget, sum(contexts) + budget) <= limit:
                fitting.append(budget)
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
    return max(fitting, default=0)
