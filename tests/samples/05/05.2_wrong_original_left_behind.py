# says: stays behind unused
def fork_cost(prompt_len, n, block_size):
    full, tail = divmod(prompt_len, block_size)
    return (n if tail else 0), full + n + (tail > 0)
