# says: The prompt gets a token in every step, though decodes have used the budget up
def chunks(prompt_len, budget, decodes_left):
    lengths = []
    left = list(decodes_left)
    while prompt_len > 0:
        served = min(budget, len(left))
        lengths.append(min(prompt_len, max(1, budget - served)))
        prompt_len -= lengths[-1]
        left = [n for n in [n - 1 for n in left[:served]] if n] + left[served:]
    return lengths
