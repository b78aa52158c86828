# says: The needy request was spared
def choose_victim(running, needy):
    rest = [request for request in running[1:] if request is not needy]
    return min(reversed(rest or running[:1]), key=lambda request: request.num_computed_tokens)
