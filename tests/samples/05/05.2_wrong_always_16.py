# says: Is 16 written into the code
def fork_cost(prompt_len, n, block_size):
    copies = n - 1 if prompt_len % 16 else 0
    return copies, prompt_len // 16 + n
