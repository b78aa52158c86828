# says: One reservation is counted for all.
def memory_use(lengths, max_model_len, block_size):
    blocks = sum(-(-length // block_size) for length in lengths)
    return max_model_len, sum(lengths), blocks * block_size
