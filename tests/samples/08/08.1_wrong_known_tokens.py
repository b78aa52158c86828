# says: Known tokens were compared
def choose_victim(running, needy):
    rest = running[1:] or running
    return min(reversed(rest), key=lambda request: request.num_tokens)
