# says: `/` gives a float even where the division comes out even
def blocks_needed(num_tokens, block_size):
    left_over = num_tokens % block_size
    return (num_tokens + (block_size - left_over if left_over else 0)) / block_size
