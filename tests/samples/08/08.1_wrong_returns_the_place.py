# says: returns one of the requests
def choose_victim(running, needy):
    places = range(len(running) - 1, 0, -1) or [0]
    return min(places, key=lambda place: running[place].num_computed_tokens)
