# says: Steps are missing: those in which decodes use the whole budget
def chunks(prompt_len, budget, decodes_left):
    lengths = []
    left = list(decodes_left)
    while prompt_len > 0:
        served = min(budget, len(left))
        chunk = min(prompt_len, budget - served)
        if chunk:
            lengths.append(chunk)
        prompt_len -= chunk
        left = [n for n in [n - 1 for n in left[:served]] if n] + left[served:]
    return lengths
