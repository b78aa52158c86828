# says: The one admitted last was left out
def choose_victim(running, needy):
    rest = running[1:-1] or running
    return min(reversed(rest), key=lambda request: request.num_computed_tokens)
