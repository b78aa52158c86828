# says: The contexts grow: each decode has one token more in every step
def choose_budget(budgets, prompt_len, contexts, limit):
    best = 0
    for budget in sorted(budgets):
        room = budget - len(contexts)
        if room <= 0:
            continue
        done, worst = 0, 0
        while done < prompt_len:
            chunk = min(room, prompt_len - done)
            done += chunk
            worst = max(worst, step_seconds(chunk + len(contexts), sum(contexts) + done))
        if worst <= limit:
            best = budget
    return best
