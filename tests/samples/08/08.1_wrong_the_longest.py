# says: This drops the longest
def choose_victim(running, needy):
    rest = running[1:] or running
    return max(rest, key=lambda request: request.num_computed_tokens)
