# says: A longest step that takes exactly as long as the limit is within it
def choose_budget(budgets, prompt_len, contexts, limit):
    best = 0
    for budget in sorted(budgets):
        room = budget - len(contexts)
        if room <= 0:
            continue
        done, read, worst = 0, sum(contexts), 0
        while done < prompt_len:
            chunk = min(room, prompt_len - done)
            done += chunk
            read += len(contexts)
            worst = max(worst, step_seconds(chunk + len(contexts), read + done))
        if worst < limit:
            best = budget
    return best
