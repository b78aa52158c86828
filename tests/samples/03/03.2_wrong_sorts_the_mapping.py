# says: The slots were used in ascending order
import torch


def write_kv(pool, slot_mapping, new):
    slots = slot_mapping.sort().values
    pool.view(-1, *pool.shape[2:])[slots] = new
