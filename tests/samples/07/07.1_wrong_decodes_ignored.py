# says: The prompt takes the whole budget, and nothing is left for the decodes
def chunks(prompt_len, budget, decodes_left):
    full, rest = divmod(prompt_len, budget)
    return [budget] * full + ([rest] if rest else [])
