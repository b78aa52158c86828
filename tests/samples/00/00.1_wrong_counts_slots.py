# says: the number of slots in those blocks
import math


def blocks_needed(num_tokens, block_size):
    return math.ceil(num_tokens / block_size) * block_size
