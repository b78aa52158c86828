def ends(prompt_len, room):
    done = 0
    while done < prompt_len:
        done = min(done + room, prompt_len)
        yield done


def longest(budget, prompt_len, contexts):
    count, before, worst, held = len(contexts), 0, 0.0, sum(contexts)
    for done in ends(prompt_len, budget - count):
        held += count
        worst = max(worst, step_seconds(count + done - before, held + done))
        before = done
    return worst


def choose_budget(budgets, prompt_len, contexts, limit):
    for budget in sorted(budgets, reverse=True):
        if budget > len(contexts) and longest(budget, prompt_len, contexts) <= limit:
            return budget
    return 0
