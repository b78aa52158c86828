# says: A decode takes one token too many
def chunks(prompt_len, budget, decodes_left):
    lengths = []
    left = list(decodes_left)
    while prompt_len > 0:
        served = min(budget, len(left))
        lengths.append(min(prompt_len, budget - served))
        prompt_len -= lengths[-1]
        left = [n - 1 for n in left[:served]] + left[served:]
        left = [n for n in left if n >= 0]
    return lengths
