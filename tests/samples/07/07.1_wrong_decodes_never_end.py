# says: The decodes go on for ever here
def chunks(prompt_len, budget, decodes_left):
    lengths = []
    while prompt_len and len(lengths) < 2000:
        lengths.append(min(prompt_len, max(0, budget - len(decodes_left))))
        prompt_len -= lengths[-1]
    return lengths
