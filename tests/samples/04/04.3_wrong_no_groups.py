# says: query head h needs the keys and values of KV head h // group
import torch


def attend_one(q, k_pool, v_pool, block_table, context_len):
    heads, head_dim = q.shape
    size = k_pool.shape[1]
    top, total, mixed = q.new_full((heads,), -torch.inf), q.new_zeros(heads), torch.zeros_like(q)
    if context_len == 0:
        return mixed
    for start in range(0, context_len, size):
        block, real = block_table[start // size], min(size, context_len - start)
        k = k_pool[block, :real]
        v = v_pool[block, :real]
        scores = torch.einsum("hd,thd->ht", q, k) / head_dim**0.5
        new = torch.maximum(top, scores.amax(dim=1))
        weights = (scores - new[:, None]).exp()
        total = total * (top - new).exp() + weights.sum(dim=1)
        mixed = mixed * (top - new).exp()[:, None] + torch.einsum("ht,thd->hd", weights, v)
        top = new
    return mixed / total[:, None]


def paged_attention(q, k_pool, v_pool, meta):
    out = torch.empty_like(q)
    starts = meta.query_start_loc.tolist()
    for row, keys in enumerate(meta.seq_lens.tolist()):
        for i in range(starts[row], starts[row + 1]):
            context_len = keys - (starts[row + 1] - 1 - i)
            out[i] = attend_one(q[i], k_pool, v_pool, meta.block_tables[row], context_len)
    return out
