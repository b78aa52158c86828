# says: The longest of these requests is reserved for each.
def memory_use(lengths, max_model_len, block_size):
    blocks = sum(-(-length // block_size) for length in lengths)
    longest = max(lengths) if lengths else 0
    return len(lengths) * longest, sum(lengths), blocks * block_size
