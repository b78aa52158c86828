# says: one token too late
def fork_cost(prompt_len, n, block_size):
    copies = n - 1 if (prompt_len + 1) % block_size else 0
    return copies, prompt_len // block_size + n
