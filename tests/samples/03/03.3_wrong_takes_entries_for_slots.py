# says: An entry of the table was taken for a slot
import torch


def gather_kv(pool, block_table, num_tokens):
    size = pool.shape[1]
    p = torch.arange(num_tokens)
    return pool.flatten(0, 1)[block_table[p // size] + p % size]
