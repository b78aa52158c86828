# says: This drops the one with the most blocks
def choose_victim(running, needy):
    return max(reversed(running[1:] or running), key=lambda request: request.num_blocks)
