# says: One block is added every time
def blocks_needed(num_tokens, block_size):
    return num_tokens // block_size + 1
