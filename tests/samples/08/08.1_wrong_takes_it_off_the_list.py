# says: The list is the scheduler's own
def choose_victim(running, needy):
    if len(running) == 1:
        return running.pop()
    rest = running[1:]
    victim = min(reversed(rest), key=lambda request: request.num_computed_tokens)
    running.remove(victim)
    return victim
