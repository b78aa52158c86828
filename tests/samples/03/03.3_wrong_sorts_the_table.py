# says: The blocks were read in the order of their numbers
import torch


def gather_kv(pool, block_table, num_tokens):
    needed = -(-num_tokens // pool.shape[1])
    return pool[block_table[:needed].sort().values].flatten(0, 1)[:num_tokens]
