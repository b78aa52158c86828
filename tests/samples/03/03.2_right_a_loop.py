import torch


def write_kv(pool, slot_mapping, new):
    size = pool.shape[1]
    for slot, row in zip(slot_mapping.tolist(), new):
        pool[slot // size][slot % size] = row
