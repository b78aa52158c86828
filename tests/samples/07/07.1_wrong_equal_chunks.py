# says: The chunks are made equal
from math import ceil


def chunks(prompt_len, budget, decodes_left):
    count = ceil(prompt_len / max(1, budget - len(decodes_left)))
    small, more = divmod(prompt_len, count)
    return [small] * (count - more) + [small + 1] * more
