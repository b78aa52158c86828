def blocks_needed(num_tokens, block_size):
    blocks = 0
    while num_tokens > 0:
        num_tokens -= block_size
        blocks += 1
    return blocks
