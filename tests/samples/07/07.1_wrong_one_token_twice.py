# says: The chunks together are not the prompt
def chunks(prompt_len, budget, decodes_left):
    lengths = []
    start = 0
    left = list(decodes_left)
    while start < prompt_len - 1:
        served = min(budget, len(left))
        chunk = min(prompt_len - start, budget - served)
        lengths.append(chunk)
        start += max(0, chunk - 1)
        left = [n for n in [n - 1 for n in left[:served]] if n] + left[served:]
        if len(lengths) > 100:
            break
    return lengths
