# says: Every sample makes a copy here
def fork_cost(prompt_len, n, block_size):
    return (n if prompt_len % block_size else 0), prompt_len // block_size + n
