"""Decode attention over a paged pool: one query per sequence, as many keys as it has.

One program per sequence, KV head and piece of the sequence. It reads its K and V once, for all
query heads that share the KV head (GQA packing): they are the rows of one small matrix, padded to
16, so that the matrix units can take the product. What limits the kernel is reading K and V.

The shape of the kernel follows vLLM's Triton kernel for the same task
(vllm/v1/attention/ops/triton_unified_attention.py) and Flash-Decoding (Dao et al. 2023).
"""

from __future__ import annotations

import triton
import triton.language as tl

from minipaged.kernels.triton_common import add_tile, find_slots, finish, load_kv


@triton.jit(do_not_specialize=["split_size", "table_width"])
def decode_kernel(
    q, k_pool, v_pool, block_tables, seq_lens, query_start_loc, out, lse,
    scale, split_size, table_width,
    GROUP: tl.constexpr, ROWS: tl.constexpr, KV: tl.constexpr,
    HEAD_DIM: tl.constexpr, DIM: tl.constexpr, BLOCK_SIZE: tl.constexpr, X: tl.constexpr,
    TILE: tl.constexpr, CARRY: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """Program (b, g, s): what the queries of KV head g of sequence b read from its piece s.

    q [T, H, HEAD_DIM] -> out [T, H, HEAD_DIM] and lse [T, H] if there is one piece; if there are
    several, float32 [B, pieces, H, HEAD_DIM] and [B, pieces, H], which merge_kernel merges. All
    contiguous. A sequence without exactly one query is left alone.
    ROWS and DIM are GROUP and HEAD_DIM padded. scale: log2 e / sqrt(HEAD_DIM).
    CARRY: look up the next tile's slots while this tile is computed.
    """
    seq, kv_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    token = tl.load(query_start_loc + seq).to(tl.int64)
    if tl.load(query_start_loc + seq + 1) - token != 1:
        return
    rows, dims = tl.arange(0, ROWS), tl.arange(0, DIM)
    heads = kv_head * GROUP + rows
    real = (rows < GROUP)[:, None] & (dims < HEAD_DIM)[None, :]
    row_of_q = (token * KV * GROUP + heads)[:, None] * HEAD_DIM
    queries = tl.load(q + row_of_q + dims[None, :], mask=real, other=0.0)

    table = block_tables + seq.to(tl.int64) * table_width
    start = split * split_size
    end = tl.minimum(start + split_size, tl.load(seq_lens + seq).to(tl.int32))
    m = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, DIM], tl.float32)
    keys = start + tl.arange(0, TILE)
    slots = find_slots(table, keys, keys < end, BLOCK_SIZE)
    for _ in range(start, end, TILE):
        ahead = keys + TILE
        next_slots = find_slots(table, ahead, ahead < end, BLOCK_SIZE) if CARRY else slots
        if not CARRY:
            slots = find_slots(table, keys, keys < end, BLOCK_SIZE)
        k, v = load_kv(k_pool, v_pool, slots, keys < end, kv_head, dims,
                       BLOCK_SIZE, KV, HEAD_DIM, X)  # fmt: skip
        m, total, acc = add_tile(queries, k, v, (keys < end)[None, :], scale, m, total, acc, UPCAST)
        keys, slots = ahead, next_slots

    read, said = finish(m, total, acc)
    pieces = tl.num_programs(2)
    row = tl.where(pieces == 1, token, seq.to(tl.int64) * pieces + split) * KV * GROUP + heads
    at = out + row[:, None] * HEAD_DIM + dims[None, :]
    tl.store(at, read.to(out.dtype.element_ty), mask=real)
    tl.store(lse + row, said, mask=rows < GROUP)
