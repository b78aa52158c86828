# says: The result is a list, but a tuple is expected.
def memory_use(lengths, max_model_len, block_size):
    blocks = sum(-(-length // block_size) for length in lengths)
    return [len(lengths) * max_model_len, sum(lengths), blocks * block_size]
