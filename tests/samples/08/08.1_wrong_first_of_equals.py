# says: Of requests with equally many
def choose_victim(running, needy):
    return min(running[1:] or running, key=lambda request: request.num_computed_tokens)
