# says: The second number is the waste.
def memory_use(lengths, max_model_len, block_size):
    blocks = sum(-(-length // block_size) for length in lengths)
    reserved = len(lengths) * max_model_len
    return reserved, reserved - sum(lengths), blocks * block_size
