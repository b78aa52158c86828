# says: Not every sample makes a copy
def fork_cost(prompt_len, n, block_size):
    return n, prompt_len // block_size + n
