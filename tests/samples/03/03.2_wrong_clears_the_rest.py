# says: Slots that are not in slot_mapping have changed
import torch


def write_kv(pool, slot_mapping, new):
    slots = pool.view(-1, *pool.shape[2:])
    slots.zero_()
    slots[slot_mapping] = new
