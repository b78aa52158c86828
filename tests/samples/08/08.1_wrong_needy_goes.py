# says: This always takes the one that found no block
def choose_victim(running, needy):
    return needy
