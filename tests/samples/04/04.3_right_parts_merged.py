import torch


def attend_one(q, k_pool, v_pool, block_table, context_len):
    """A part for each block and head, all merged by their LSEs at the end."""
    heads, head_dim = q.shape
    size, group = k_pool.shape[1], heads // k_pool.shape[2]
    parts, lses = [], []
    for number in range(-(-context_len // size)):
        real = slice(0, context_len - number * size)
        for head in range(heads):
            k = k_pool[block_table[number], real, head // group]
            v = v_pool[block_table[number], real, head // group]
            scores = k @ q[head] / head_dim**0.5
            parts.append(scores.softmax(dim=0) @ v)
            lses.append(scores.logsumexp(dim=0))
    if not parts:
        return torch.zeros_like(q)
    outputs = torch.stack(parts).view(-1, heads, head_dim)
    shares = torch.stack(lses).view(-1, heads).softmax(dim=0)
    return (shares[:, :, None] * outputs).sum(dim=0)


def paged_attention(q, k_pool, v_pool, meta):
    out = torch.empty_like(q)
    starts = meta.query_start_loc.tolist()
    for row, keys in enumerate(meta.seq_lens.tolist()):
        for i in range(starts[row], starts[row + 1]):
            context_len = keys - (starts[row + 1] - 1 - i)
            out[i] = attend_one(q[i], k_pool, v_pool, meta.block_tables[row], context_len)
    return out
