# says: A decode that found no room in the budget got no token
def chunks(prompt_len, budget, decodes_left):
    lengths = []
    step = 0
    while sum(lengths) < prompt_len:
        alive = sum(n > step for n in decodes_left)
        lengths.append(min(prompt_len - sum(lengths), max(0, budget - alive)))
        step += 1
    return lengths
