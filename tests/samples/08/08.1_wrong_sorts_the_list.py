# says: The list is the scheduler's own
def choose_victim(running, needy):
    if len(running) == 1:
        return running[0]
    first = running.pop(0)
    running.reverse()
    running.sort(key=lambda request: request.num_computed_tokens)
    running.append(first)
    return running[0]
