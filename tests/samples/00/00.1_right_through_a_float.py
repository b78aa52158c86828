from math import ceil


def blocks_needed(num_tokens, block_size):
    return ceil(num_tokens / block_size)
