# says: The tokens in the last, partly filled block are missing
import torch


def gather_kv(pool, block_table, num_tokens):
    return pool[block_table[: num_tokens // pool.shape[1]]].flatten(0, 1)
