# says: Whole blocks came back
import torch


def gather_kv(pool, block_table, num_tokens):
    needed = -(-num_tokens // pool.shape[1])
    return pool[block_table[:needed]].flatten(0, 1)
