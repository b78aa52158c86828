# says: The first in line was chosen
def choose_victim(running, needy):
    return min(reversed(running), key=lambda request: request.num_computed_tokens)
