def choose_victim(running, needy):
    places = sorted(
        range(len(running)),
        key=lambda place: (place == 0, running[place].num_computed_tokens, -place),
    )
    return running[places[0]]
