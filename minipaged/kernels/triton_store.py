"""Write a step's keys and values into their slots, and copy whole blocks: the moving kernels."""

from __future__ import annotations

import triton
import triton.language as tl

from minipaged.kernels.triton_common import k_offsets


@triton.jit
def write_kernel(
    k, v, k_pool, v_pool, slot_mapping,
    KV: tl.constexpr, HEAD_DIM: tl.constexpr, DIM: tl.constexpr,
    BLOCK_SIZE: tl.constexpr, X: tl.constexpr,
):  # fmt: skip
    """Program (t, g): KV head g of token t. k, v [T, KV, HEAD_DIM] contiguous.

    As vLLM's reshape_and_cache (csrc/cache_kernels.cu) for its two layouts.
    """
    token, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    slot = tl.load(slot_mapping + token).to(tl.int64)
    dims = tl.arange(0, DIM)
    real = dims < HEAD_DIM
    source = (token * KV + head) * HEAD_DIM + dims
    target = k_offsets(slot, head, dims, BLOCK_SIZE, KV, HEAD_DIM, X)
    tl.store(k_pool + target, tl.load(k + source, mask=real), mask=real)
    target = (slot * KV + head) * HEAD_DIM + dims
    tl.store(v_pool + target, tl.load(v + source, mask=real), mask=real)


@triton.jit
def copy_kernel(
    source, target, source_ids, target_ids, BLOCK_NUMEL: tl.constexpr, CHUNK: tl.constexpr
):
    """Program (i, c): chunk c of block source_ids[i] to block target_ids[i].

    source, target [num_blocks, BLOCK_NUMEL] contiguous; they may be one pool. No block is both
    read and written in one launch: programs run in any order.
    """
    pair = tl.program_id(0)
    inside = tl.program_id(1) * CHUNK + tl.arange(0, CHUNK)
    real = inside < BLOCK_NUMEL
    read_at = tl.load(source_ids + pair).to(tl.int64) * BLOCK_NUMEL + inside
    write_at = tl.load(target_ids + pair).to(tl.int64) * BLOCK_NUMEL + inside
    tl.store(target + write_at, tl.load(source + read_at, mask=real), mask=real)
