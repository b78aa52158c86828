# says: returns one of the requests
def choose_victim(running, needy):
    rest = running[1:] or running
    return min(reversed(rest), key=lambda request: request.num_computed_tokens).request_id
