# says: Second and third number have changed places.
def memory_use(lengths, max_model_len, block_size):
    blocks = sum(-(-length // block_size) for length in lengths)
    return len(lengths) * max_model_len, blocks * block_size, sum(lengths)
