# says: slots begin again at 0
import triton
import triton.language as tl

TILE = 64


@triton.jit
def decode_kernel(
    q, k_pool, v_pool, out, block_tables, seqs, contexts, table_width, scale,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_SIZE: tl.constexpr,
    ROWS: tl.constexpr, DIM: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Program (token, KV head): what the query heads of this KV head read for this token."""
    token, kv_head = tl.program_id(0), tl.program_id(1)
    table = block_tables + tl.load(seqs + token) * table_width
    context = tl.load(contexts + token)
    rows, dims = tl.arange(0, ROWS), tl.arange(0, DIM)
    group = HEADS // KV_HEADS
    real = (rows < group)[:, None] & (dims < HEAD_DIM)[None, :]
    at = (token * HEADS + kv_head * group + rows)[:, None] * HEAD_DIM + dims[None, :]
    queries = tl.load(q + at, mask=real, other=0.0)
    top = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.full([ROWS], 0.0, tl.float32)
    mixed = tl.full([ROWS, DIM], 0.0, tl.float32)
    for start in range(0, context, TILE):
        keys = start + tl.arange(0, TILE)
        seen = keys < context
        blocks = tl.load(table + keys // BLOCK_SIZE, mask=seen, other=0).to(tl.int64)
        slots = blocks * BLOCK_SIZE + keys
        where = (slots * KV_HEADS + kv_head)[:, None] * HEAD_DIM + dims[None, :]
        written = seen[:, None] & (dims < HEAD_DIM)[None, :]
        k = tl.load(k_pool + where, mask=written, other=0.0)
        v = tl.load(v_pool + where, mask=written, other=0.0)
        scores = tl.dot(queries, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(seen[None, :], scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp(scores - higher[:, None])
        shrink = tl.exp(top - higher)
        total = total * shrink + tl.sum(weights, 1)
        added = tl.dot(weights.to(v.dtype), v, input_precision="ieee")
        mixed = mixed * shrink[:, None] + added
        top = higher
    divisor = tl.where(total > 0, total, 1.0)
    tl.store(out + at, mixed / divisor[:, None], mask=real)


def paged_decode(q, k_pool, v_pool, meta):
    """What all queries [tokens, heads, head_dim] of a step read; the engine calls this."""
    return launch(decode_kernel, q, k_pool, v_pool, meta, TILE)
