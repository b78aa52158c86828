import torch
from torch.nn.functional import scaled_dot_product_attention


def attend_one(q, k_pool, v_pool, block_table, context_len):
    """All slots at once, then torch's own attention."""
    if context_len == 0:
        return torch.zeros_like(q)
    size, group = k_pool.shape[1], q.shape[0] // k_pool.shape[2]
    positions = torch.arange(context_len)
    at = block_table[positions // size], positions % size
    k, v = (pool[at].repeat_interleave(group, dim=1).transpose(0, 1) for pool in (k_pool, v_pool))
    return scaled_dot_product_attention(q[:, None], k, v)[:, 0]


def paged_attention(q, k_pool, v_pool, meta):
    out = torch.empty_like(q)
    starts = meta.query_start_loc.tolist()
    for row, keys in enumerate(meta.seq_lens.tolist()):
        for i in range(starts[row], starts[row + 1]):
            context_len = keys - (starts[row + 1] - 1 - i)
            out[i] = attend_one(q[i], k_pool, v_pool, meta.block_tables[row], context_len)
    return out
