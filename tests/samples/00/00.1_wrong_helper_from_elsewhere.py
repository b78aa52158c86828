# says: name 'ceil_div' is not defined
def blocks_needed(num_tokens, block_size):
    return ceil_div(num_tokens, block_size)
