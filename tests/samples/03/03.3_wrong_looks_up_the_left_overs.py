# says: Entries of the table behind the last token
import torch


def gather_kv(pool, block_table, num_tokens):
    return pool[block_table].flatten(0, 1)[:num_tokens]
