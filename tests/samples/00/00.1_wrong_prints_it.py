# says: write `return` where `print` stands
def blocks_needed(num_tokens, block_size):
    print(-(-num_tokens // block_size))
