# says: without any sharing
def fork_cost(prompt_len, n, block_size):
    copies = n - 1 if prompt_len % block_size else 0
    return copies, n * -(-(prompt_len + 1) // block_size)
