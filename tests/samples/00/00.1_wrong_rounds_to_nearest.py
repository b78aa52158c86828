# says: rounded to the nearest whole number
def blocks_needed(num_tokens, block_size):
    return round(num_tokens / block_size)
