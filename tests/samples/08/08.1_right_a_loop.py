def choose_victim(running, needy):
    victim = running[-1]
    for request in running[::-1]:
        is_first = request is running[0]
        if not is_first and request.num_computed_tokens < victim.num_computed_tokens:
            victim = request
    return victim
