# says: The blocks are counted for all requests together.
def memory_use(lengths, max_model_len, block_size):
    used = sum(lengths)
    blocks = -(-used // block_size)
    return len(lengths) * max_model_len, used, blocks * block_size
