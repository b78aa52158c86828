# says: The arguments have changed places
def blocks_needed(num_tokens, block_size):
    full, left_over = divmod(block_size, max(num_tokens, 1))
    return full + bool(left_over) if num_tokens else 0
