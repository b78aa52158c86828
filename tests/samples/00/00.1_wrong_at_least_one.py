# says: All is right but for a request without tokens
def blocks_needed(num_tokens, block_size):
    return max(1, -(-num_tokens // block_size))
