"""Whether queries and pools fit together: the one clear error of every attention backend."""

from __future__ import annotations

import torch
from torch import Tensor

from minipaged.kernels.layouts import PoolShape


def require_fit(q: Tensor, k: PoolShape, k_dtype: torch.dtype, v_pool: Tensor) -> None:
    """ValueError unless q [T, H, D], K's pool and v_pool [num_blocks, block_size, KV, D] fit.

    H must be a multiple of KV, D and the dtype the same in all three, v_pool contiguous.
    """
    if q.dim() != 3 or not k.kv_heads:
        raise ValueError(
            f"q {list(q.shape)} and k_pool {list(k[:4])}: q must be [tokens, query heads, "
            "head_dim], and the pools must have at least one KV head"
        )
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


def require_storable(k: Tensor, v: Tensor, pool: PoolShape, slot_mapping: Tensor) -> None:
    """ValueError unless k and v are [T, KV, D] of the pool's KV and D, each token with a slot."""
    if not k.shape == v.shape == (len(slot_mapping), pool.kv_heads, pool.head_dim):
        raise ValueError(
            f"k {list(k.shape)}, v {list(v.shape)} and slot_mapping {list(slot_mapping.shape)} do "
            f"not fit: k and v must be [tokens, {pool.kv_heads}, {pool.head_dim}], with a slot each"
        )
    require_contiguous(slot_mapping=slot_mapping)


def require_like(out: Tensor, q: Tensor) -> None:
    """ValueError unless out, to be written to, has q's shape and dtype and is contiguous."""
    if out.shape != q.shape or out.dtype != q.dtype:
        raise ValueError(
            f"out is {list(out.shape)} {out.dtype}, but q is {list(q.shape)} {q.dtype}: give one "
            "that is like q"
        )
    require_contiguous(out=out)


def require_same_blocks(source: Tensor, target: Tensor) -> None:
    """ValueError unless blocks of both pools have one shape and dtype, and both are contiguous."""
    if source.shape[1:] != target.shape[1:] or source.dtype != target.dtype:
        raise ValueError(
            f"blocks of {list(source.shape[1:])} {source.dtype} cannot be moved into blocks of "
            f"{list(target.shape[1:])} {target.dtype}: the pools must be alike but for their "
            "number of blocks"
        )
    require_contiguous(source=source, target=target)


def require_contiguous(**tensors: Tensor) -> None:
    """ValueError that names the first tensor which is not contiguous: kernels count on it."""
    for name, tensor in tensors.items():
        if not tensor.is_contiguous():
            raise ValueError(
                f"{name} {list(tensor.shape)} has the strides {tensor.stride()} and is not "
                "contiguous: give a tensor that is, such as its .contiguous() copy"
            )
