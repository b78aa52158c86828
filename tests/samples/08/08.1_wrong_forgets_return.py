# says: Without a `return` it gives back None
def choose_victim(running, needy):
    rest = running[1:] or running
    min(reversed(rest), key=lambda request: request.num_computed_tokens)
