# says: A copy is counted where the prompt ends with a full block
def fork_cost(prompt_len, n, block_size):
    return n - 1, prompt_len // block_size + n
