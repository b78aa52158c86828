"""Where a number of K or V lies in a pool: two layouts, and what each costs to read.

"NHD"     [num_blocks, block_size, KV, D]         one token's D numbers of a head side by side
"packed"  [num_blocks, KV, D / x, block_size, x]  x numbers of D side by side, then the next token

Packed is the K layout of vLLM's first CUDA kernel (csrc/attention/attention_kernels.cu), with x
such that x numbers are 16 bytes: what one thread loads at once. V stays in NHD here.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

PACK_BYTES = 16
"""Bytes that lie side by side in the packed layout: the widest load of one GPU thread."""


def pack_width(dtype: torch.dtype) -> int:
    """x of the packed layout: numbers of this dtype in 16 bytes. 8 for 16 bit, 4 for float32."""
    return PACK_BYTES // dtype.itemsize


def pack_k(k_pool: Tensor) -> Tensor:
    """A K pool [num_blocks, block_size, KV, D] in the packed layout, as a copy.

    ValueError if D is no multiple of x. Cost: one copy of the pool.
    """
    num_blocks, block_size, kv_heads, dim = k_pool.shape
    x = pack_width(k_pool.dtype)
    if dim % x:
        raise ValueError(
            f"head_dim {dim} cannot be cut into groups of {x} numbers ({PACK_BYTES} bytes of "
            f"{k_pool.dtype}): use the NHD layout, or a head_dim that is a multiple of {x}"
        )
    groups = k_pool.view(num_blocks, block_size, kv_heads, dim // x, x)
    return groups.permute(0, 2, 3, 1, 4).contiguous()


def unpack_k(k_pool: Tensor) -> Tensor:
    """A packed K pool [num_blocks, KV, D / x, block_size, x] as [num_blocks, block_size, KV, D]."""
    num_blocks, kv_heads, groups, block_size, x = k_pool.shape
    return k_pool.permute(0, 3, 1, 2, 4).reshape(num_blocks, block_size, kv_heads, groups * x)


class PoolShape(NamedTuple):
    """What a kernel has to know of a K pool. x: 0 for NHD, else numbers side by side when packed.

    Number d of KV head h of slot s = block * block_size + i is at (s * KV + h) * D + d in NHD, and
    at (((block * KV + h) * (D / x) + d // x) * block_size + i) * x + d % x when packed.
    """

    num_blocks: int
    block_size: int
    kv_heads: int
    head_dim: int
    x: int


def pool_shape(k_pool: Tensor) -> PoolShape:
    """The shape of a K pool in either layout: four dimensions are NHD, five are packed.

    ValueError for any other number of dimensions, or a pool that is not contiguous.
    """
    if k_pool.dim() not in (4, 5) or not k_pool.is_contiguous():
        kind = "contiguous" if k_pool.is_contiguous() else "not contiguous"
        raise ValueError(
            f"the K pool has the shape {list(k_pool.shape)} and is {kind}: use a contiguous "
            "[num_blocks, block_size, KV, D], or [num_blocks, KV, D / x, block_size, x]"
        )
    if k_pool.dim() == 4:
        num_blocks, block_size, kv_heads, dim = k_pool.shape
        return PoolShape(num_blocks, block_size, kv_heads, dim, 0)
    num_blocks, kv_heads, groups, block_size, x = k_pool.shape
    return PoolShape(num_blocks, block_size, kv_heads, groups * x, x)
