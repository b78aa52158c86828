# says: The count is rounded down
def blocks_needed(num_tokens, block_size):
    return num_tokens // block_size
