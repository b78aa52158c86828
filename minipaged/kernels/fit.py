"""Whether queries and pools fit together: the one clear error of every attention backend."""

from __future__ import annotations

import torch
from torch import Tensor

from minipaged.kernels.layouts import PoolShape


def require_fit(q: Tensor, k: PoolShape, k_dtype: torch.dtype, v_pool: Tensor) -> None:
    """ValueError unless q [T, H, D], K's pool and v_pool [num_blocks, block_size, KV, D] fit.

    H must be a multiple of KV, D and the dtype the same in all three, v_pool contiguous.
    """
    heads, kv_heads = q.shape[1], k.kv_heads
    if heads % kv_heads:
        raise ValueError(
            f"{heads} query heads cannot share {kv_heads} KV heads evenly: the number of query "
            "heads must be a multiple of the number of KV heads"
        )
    if v_pool.shape != k[:4] or q.shape[2] != k.head_dim:
        raise ValueError(
            f"q {list(q.shape)}, k_pool {list(k[:4])} and v_pool {list(v_pool.shape)} do "
            "not fit: the pools must be equal in shape and head_dim the same in all three"
        )
    if not q.dtype == k_dtype == v_pool.dtype:
        raise ValueError(
            f"q is {q.dtype}, k_pool {k_dtype}, v_pool {v_pool.dtype}: use one dtype for all"
        )
    require_contiguous(v_pool=v_pool)


def require_contiguous(**tensors: Tensor) -> None:
    """ValueError that names the first tensor which is not contiguous: kernels count on it."""
    for name, tensor in tensors.items():
        if not tensor.is_contiguous():
            raise ValueError(
                f"{name} {list(tensor.shape)} has the strides {tensor.stride()} and is not "
                "contiguous: give a tensor that is, such as its .contiguous() copy"
            )
