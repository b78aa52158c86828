"""What the attention kernels share: where keys lie in the pools, and one step of online softmax.

A tile is a few keys of one sequence, next to each other in the sequence and anywhere in the pool.
Its length need not have anything to do with the block size: each key looks up its own block.
Scores are kept in base 2 (scale includes log2 e), as a GPU computes 2^x at once, and e^x by it.

Running softmax: Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"; its use
over tiles: FlashAttention (Dao et al. 2022).
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def find_slots(table, keys, seen, BLOCK_SIZE: tl.constexpr):
    """The slot of each key [TILE] by the block table, int64: 32 bits end at slot 2^31."""
    block_ids = tl.load(table + keys // BLOCK_SIZE, mask=seen, other=0).to(tl.int64)
    return block_ids * BLOCK_SIZE + keys % BLOCK_SIZE


@triton.jit
def k_offsets(
    slots, head, dims,
    BLOCK_SIZE: tl.constexpr, KV: tl.constexpr, HEAD_DIM: tl.constexpr, X: tl.constexpr,
):  # fmt: skip
    """Where the numbers `dims` of K of the tokens in `slots` lie, by layouts.py; X = 0 is NHD."""
    if X == 0:
        offsets = (slots * KV + head) * HEAD_DIM + dims
    else:
        row = (slots // BLOCK_SIZE * KV + head) * (HEAD_DIM // X) + dims // X
        offsets = (row * BLOCK_SIZE + slots % BLOCK_SIZE) * X + dims % X
    return offsets


@triton.jit
def load_kv(
    k_pool, v_pool, slots, seen, head, dims,
    BLOCK_SIZE: tl.constexpr, KV: tl.constexpr, HEAD_DIM: tl.constexpr, X: tl.constexpr,
):  # fmt: skip
    """K and V of one head in `slots`, [TILE, DIM] each; 0 for keys that are not seen.

    Those are not read at all: what lies there may be NaN, and 0 x NaN is NaN.
    """
    at, across = slots[:, None], dims[None, :]
    mask = seen[:, None] & (across < HEAD_DIM)
    k = tl.load(k_pool + k_offsets(at, head, across, BLOCK_SIZE, KV, HEAD_DIM, X), mask, 0.0)
    v = tl.load(v_pool + (at * KV + head) * HEAD_DIM + across, mask, 0.0)
    return k, v


@triton.jit
def add_tile(q, k, v, seen, scale, m, total, acc, UPCAST: tl.constexpr):
    """Take a tile of keys into the running softmax of every row.

    q [ROWS, DIM], k and v [TILE, DIM], seen [ROWS or 1, TILE]. All float32: m, the largest score so
    far, in base 2; total, the sum of 2^(score - m); acc [ROWS, DIM], the sum of 2^(score - m) v.
    A row that sees no key of the tile keeps what it has, bit for bit.
    UPCAST: multiply in float32. The interpreter's dot of bfloat16 is silently wrong without.
    """
    if UPCAST:
        q, k, v = q.to(tl.float32), k.to(tl.float32), v.to(tl.float32)
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    scores = tl.where(seen, scores, float("-inf"))
    largest = tl.maximum(m, tl.max(scores, 1))
    # a row without any key yet has -inf, and -inf - -inf would be NaN
    base = tl.where(largest == float("-inf"), 0.0, largest)
    weights = tl.exp2(scores - base[:, None])
    shrink = tl.exp2(m - base)
    total = total * shrink + tl.sum(weights, 1)
    acc = acc * shrink[:, None]
    return largest, total, tl.dot(weights.to(v.dtype), v, acc, input_precision="ieee")


@triton.jit
def finish(m, total, acc):
    """Output [ROWS, DIM] and natural LSE [ROWS] of a finished softmax; 0 and -inf without keys."""
    has_keys = total > 0
    divisor = tl.where(has_keys, total, 1.0)
    lse = tl.where(has_keys, (m + tl.log2(divisor)) * 0.6931471805599453, float("-inf"))
    return acc / divisor[:, None], lse
