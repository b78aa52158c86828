# says: A decode takes one token a step, however many it has still to write
def chunks(prompt_len, budget, decodes_left):
    lengths = [min(prompt_len, max(0, budget - sum(decodes_left)))]
    while sum(lengths) < prompt_len:
        lengths.append(min(prompt_len - sum(lengths), budget))
    return lengths
