"""Attention of chunks over a paged pool: several neighbouring queries per sequence, and decodes.

A tile of queries is a few neighbouring positions of one sequence times the query heads that share
a KV head. One program takes one tile and one KV head and reads the keys up to the tile's last
position; each query sees those up to its own. A decode is a tile with a single position, so a
step's chunks and decodes go in one launch.

The shape of the kernel follows vllm/v1/attention/ops/triton_unified_attention.py, which finds a
tile's sequence by a binary search in the kernel; here the step's list of tiles says it.
"""

from __future__ import annotations

import triton
import triton.language as tl

from minipaged.kernels.triton_common import add_tile, find_slots, finish, load_kv


@triton.jit(do_not_specialize=["table_width"])
def prefill_kernel(
    q, k_pool, v_pool, block_tables, seq_lens, query_start_loc, tile_seq, tile_first, out, lse,
    scale, table_width,
    GROUP: tl.constexpr, QUERIES: tl.constexpr, ROWS: tl.constexpr, KV: tl.constexpr,
    HEAD_DIM: tl.constexpr, DIM: tl.constexpr, BLOCK_SIZE: tl.constexpr, X: tl.constexpr,
    TILE: tl.constexpr, CARRY: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """Program (i, g): KV head g for tile i, up to QUERIES positions of sequence tile_seq[i].

    tile_first[i]: the tile's first query, counted within its sequence's queries of this step.
    Row r of the matrix is query r // GROUP of the tile and query head r % GROUP of the KV head.
    q, out [T, H, HEAD_DIM] and lse [T, H] contiguous. The rest as in decode_kernel.
    """
    kv_head = tl.program_id(1)
    seq = tl.load(tile_seq + tl.program_id(0)).to(tl.int64)
    first = tl.load(tile_first + tl.program_id(0)).to(tl.int32)
    token = tl.load(query_start_loc + seq).to(tl.int64)
    num_queries = (tl.load(query_start_loc + seq + 1) - token).to(tl.int32)
    computed = tl.load(seq_lens + seq).to(tl.int32) - num_queries  # keys before the first query
    rows, dims = tl.arange(0, ROWS), tl.arange(0, DIM)
    query = first + rows // GROUP
    is_real = (rows < QUERIES * GROUP) & (query < num_queries)
    row = (token + query) * KV * GROUP + kv_head * GROUP + rows % GROUP
    real = is_real[:, None] & (dims < HEAD_DIM)[None, :]
    queries = tl.load(q + row[:, None] * HEAD_DIM + dims[None, :], mask=real, other=0.0)

    table = block_tables + seq * table_width
    position = tl.where(is_real, computed + query, -1)
    end = computed + tl.minimum(first + QUERIES, num_queries)
    m = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, DIM], tl.float32)
    keys = tl.arange(0, TILE)
    slots = find_slots(table, keys, keys < end, BLOCK_SIZE)
    for _ in range(0, end, TILE):
        ahead = keys + TILE
        next_slots = find_slots(table, ahead, ahead < end, BLOCK_SIZE) if CARRY else slots
        if not CARRY:
            slots = find_slots(table, keys, keys < end, BLOCK_SIZE)
        k, v = load_kv(k_pool, v_pool, slots, keys < end, kv_head, dims,
                       BLOCK_SIZE, KV, HEAD_DIM, X)  # fmt: skip
        seen = keys[None, :] <= position[:, None]
        m, total, acc = add_tile(queries, k, v, seen, scale, m, total, acc, UPCAST)
        keys, slots = ahead, next_slots

    read, said = finish(m, total, acc)
    at = out + row[:, None] * HEAD_DIM + dims[None, :]
    tl.store(at, read.to(out.dtype.element_ty), mask=real)
    tl.store(lse + row, said, mask=is_real)
