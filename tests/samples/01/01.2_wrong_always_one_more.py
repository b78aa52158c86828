# says: One block is added for every request
def memory_use(lengths, max_model_len, block_size):
    blocks = sum(length // block_size + 1 for length in lengths)
    return len(lengths) * max_model_len, sum(lengths), blocks * block_size
