"""The two backends that an executor can work with: plain torch, and Triton kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from minipaged.kernels import reference
from minipaged.kernels.meta import AttentionFn


class Kernels(NamedTuple):
    """All that touches the pools. The functions of reference.py say what each must do.

    attention(q, k_pool, v_pool, meta), write_kv(k, v, k_pool, v_pool, slot_mapping),
    copy_blocks(pool, pairs) and move_blocks(source, target, pairs).
    """

    attention: AttentionFn
    write_kv: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], None]
    copy_blocks: Callable[[Tensor, Iterable[tuple[int, int]]], None]
    move_blocks: Callable[[Tensor, Tensor, Sequence[tuple[int, int]]], None]


TORCH = Kernels(
    reference.paged_attention, reference.write_kv, reference.copy_blocks, reference.move_blocks
)


def kernels_of(backend: str, device: torch.device | str) -> Kernels:
    """The backend "torch" or "triton" for tensors of `device`.

    ValueError if Triton is not there (it has no wheel for macOS and Windows), or if it cannot
    work on that device: it needs a GPU, or its interpreter.
    """
    if backend == "torch":
        return TORCH
    try:
        from minipaged.kernels import triton_backend as kernels
    except ImportError as error:
        raise ValueError(
            f"attention_backend='triton', but triton cannot be imported ({error}): it has wheels "
            "for Linux only; take attention_backend='torch'"
        ) from None
    kernels.require_usable(torch.device(device))
    return Kernels(
        kernels.TritonAttention(), kernels.write_kv, kernels.copy_blocks, kernels.move_blocks
    )
