# says: the number of tokens in the last block
def blocks_needed(num_tokens, block_size):
    return num_tokens % block_size
