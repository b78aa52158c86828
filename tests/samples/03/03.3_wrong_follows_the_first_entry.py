# says: Only the first entry of the table was used
import torch


def gather_kv(pool, block_table, num_tokens):
    first = int(block_table[0]) * pool.shape[1]
    return pool.flatten(0, 1)[first : first + num_tokens]
