import triton
import triton.language as tl

TILE = 64


@triton.jit
def find(tables, row, width, keys, context, head, dims, SIZE: tl.constexpr, KV: tl.constexpr, D: tl.constexpr):
    entries = tl.load(tables + row * width + keys // SIZE, mask=keys < context, other=0)
    blocks = tl.cast(entries, tl.int64)
    first = blocks * (SIZE * KV * D) + (keys % SIZE) * (KV * D) + head * D
    return first[:, None] + dims[None, :], (keys < context)[:, None] & (dims < D)[None, :]


@triton.jit
def decode_kernel(
    q, k_pool, v_pool, out, block_tables, seqs, contexts, table_width, scale,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_SIZE: tl.constexpr,
    ROWS: tl.constexpr, DIM: tl.constexpr, TILE: tl.constexpr,
):
    """Two passes: the maximum over all keys first, then the sums."""
    token = tl.program_id(0)
    head = tl.program_id(1)
    row, context = tl.load(seqs + token), tl.load(contexts + token)
    d = tl.arange(0, DIM)
    h = head * (HEADS // KV_HEADS) + tl.arange(0, ROWS)
    ok = (h[:, None] < (head + 1) * (HEADS // KV_HEADS)) & (d[None, :] < HEAD_DIM)
    mine = token * HEADS * HEAD_DIM + h[:, None] * HEAD_DIM + d[None, :]
    query = tl.load(q + mine, mask=ok, other=0)
    highest = tl.full([ROWS], -1.0e30, tl.float32)
    at = 0
    while at < context:
        keys = at + tl.arange(0, TILE)
        places, there = find(block_tables, row, table_width, keys, context, head, d, BLOCK_SIZE, KV_HEADS, HEAD_DIM)
        k = tl.load(k_pool + places, mask=there, other=0)
        s = tl.dot(query, tl.trans(k), input_precision="ieee") * scale
        highest = tl.maximum(highest, tl.max(tl.where(keys[None, :] < context, s, -1.0e30), 1))
        at += TILE
    weighed = tl.full([ROWS, DIM], 0.0, tl.float32)
    total = tl.full([ROWS], 0.0, tl.float32)
    at = 0
    while at < context:
        keys = at + tl.arange(0, TILE)
        places, there = find(block_tables, row, table_width, keys, context, head, d, BLOCK_SIZE, KV_HEADS, HEAD_DIM)
        k = tl.load(k_pool + places, mask=there, other=0)
        v = tl.load(v_pool + places, mask=there, other=0)
        s = tl.dot(query, tl.trans(k), input_precision="ieee") * scale
        w = tl.where(keys[None, :] < context, tl.exp(s - highest[:, None]), 0.0)
        total += tl.sum(w, 1)
        weighed = tl.dot(w.to(v.dtype), v, weighed, input_precision="ieee")
        at += TILE
    result = weighed / tl.maximum(total, 1.0e-30)[:, None]
    tl.store(out + mine, result, mask=ok)


def paged_decode(q, k_pool, v_pool, meta):
    """What all queries [tokens, heads, head_dim] of a step read; the engine calls this."""
    return launch(decode_kernel, q, k_pool, v_pool, meta, TILE)
