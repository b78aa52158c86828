# says: their dtype is not
import torch


def gather_kv(pool, block_table, num_tokens):
    size = pool.shape[1]
    p = torch.arange(num_tokens)
    return pool[block_table[p // size].long(), p % size].float()
