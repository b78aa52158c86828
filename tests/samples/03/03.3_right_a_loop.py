import torch


def gather_kv(pool, block_table, num_tokens):
    size = pool.shape[1]
    out = pool.new_empty((num_tokens, *pool.shape[2:]))
    for position in range(num_tokens):
        out[position] = pool[block_table[position // size], position % size]
    return out
