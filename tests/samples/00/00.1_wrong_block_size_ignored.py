# says: Is 16 written into the code?
BLOCK_SIZE = 16


def blocks_needed(num_tokens, block_size):
    return (num_tokens + BLOCK_SIZE - 1) // BLOCK_SIZE
