"""The backend that an engine calls: pools written, read, copied and moved by the kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
import triton
from torch import Tensor

from minipaged.kernels.constants import (
    COPY_CHUNK,
    COPY_OPTIONS,
    WRITE_OPTIONS,
    copy_constants,
    pool_constants,
)
from minipaged.kernels.fit import (
    require_contiguous,
    require_fit,
    require_same_blocks,
    require_storable,
)
from minipaged.kernels.layouts import pool_shape
from minipaged.kernels.meta import AttentionMeta
from minipaged.kernels.runs import independent_runs
from minipaged.kernels.triton_attention import paged_decode, paged_prefill
from minipaged.kernels.triton_launch import INTERPRETED, on_device
from minipaged.kernels.triton_store import copy_kernel, write_kernel


class TritonAttention:
    """paged_attention by the kernels: an AttentionFn (see meta.py).

    A step of decodes alone takes the decode kernel; one with chunks takes the prefill kernel for
    all, in one launch. split_size: a fixed number of keys per piece; decodes then take the decode
    kernel in every step, so that their results do not depend on the batch, at the cost of a second
    launch beside chunks. A chunk's last bits still depend on whether it has one token or more.
    """

    def __init__(self, split_size: int | None = None) -> None:
        self.split_size = split_size

    def __call__(self, q: Tensor, k_pool: Tensor, v_pool: Tensor, meta: AttentionMeta) -> Tensor:
        """q [T, H, D], pools [num_blocks, block_size, KV, D] -> [T, H, D]; ValueError for what
        does not fit. The largest number of queries is asked of the device once a step."""
        if "most queries" not in meta.memo:
            lengths = meta.query_start_loc.diff()
            meta.memo["most queries"] = int(lengths.max()) if len(lengths) else 0
        most = meta.memo["most queries"]
        if most <= 1:
            return paged_decode(q, k_pool, v_pool, meta, split_size=self.split_size)[0]
        if self.split_size is None:
            return paged_prefill(q, k_pool, v_pool, meta)[0]
        out, _ = paged_decode(q, k_pool, v_pool, meta, split_size=self.split_size)
        return paged_prefill(q, k_pool, v_pool, meta, min_queries=2, out=out)[0]


def write_kv(k: Tensor, v: Tensor, k_pool: Tensor, v_pool: Tensor, slot_mapping: Tensor) -> None:
    """Store k, v [T, KV, D] in the slots slot_mapping [T] of the pools, in place.

    k_pool: in either layout of layouts.py; v_pool [num_blocks, block_size, KV, D], contiguous.
    Slots are distinct and inside the pool; the kernel does not look.
    """
    shape = pool_shape(k_pool)
    require_contiguous(v_pool=v_pool)
    require_fit(k, shape, k_pool.dtype, v_pool)
    require_storable(k, v, shape, slot_mapping)
    if not len(k):
        return
    with on_device(k_pool):
        write_kernel[(len(k), shape.kv_heads)](
            k.contiguous(), v.contiguous(), k_pool, v_pool, slot_mapping,
            **pool_constants(shape), **WRITE_OPTIONS,
        )  # fmt: skip


def copy_blocks(pool: Tensor, pairs: Iterable[tuple[int, int]]) -> None:
    """Copy block source to block target for each (source, target), as if one after another.

    pool: contiguous [num_blocks, ...]. One launch for pairs that do not touch each other's blocks.
    """
    for run in independent_runs(pairs):
        require_contiguous(pool=pool)
        _copy(pool, pool, list(run.values()), list(run))


def move_blocks(source: Tensor, target: Tensor, pairs: Sequence[tuple[int, int]]) -> None:
    """Copy block a of one pool to block b of another for each (a, b), between GPU and host too.

    The blocks are gathered on the device and cross the bus as one piece: one large transfer is
    faster than many of a block each. source, target: contiguous, with one shape of a block.
    """
    if not pairs:
        return
    require_same_blocks(source, target)
    sources, targets = (list(ids) for ids in zip(*pairs, strict=True))
    if source.device == target.device:
        _copy(source, target, sources, targets)
    elif target.device.type == "cpu":
        staged = source.new_empty(len(pairs), *source.shape[1:])
        _copy(source, staged, sources, list(range(len(pairs))))
        target[targets] = staged.cpu()
    else:
        staged = source[sources].to(target.device)
        _copy(staged, target, list(range(len(pairs))), targets)


def _copy(source: Tensor, target: Tensor, sources: Sequence[int], targets: Sequence[int]) -> None:
    numel = source[0].numel()
    source_ids, target_ids = (torch.tensor(ids, device=source.device) for ids in (sources, targets))
    with on_device(target):
        copy_kernel[(len(sources), triton.cdiv(numel, COPY_CHUNK))](
            source, target, source_ids, target_ids, **copy_constants(numel), **COPY_OPTIONS
        )


def require_usable(device: torch.device) -> None:
    """ValueError unless the kernels of this process can work on tensors of `device`."""
    how = "set TRITON_INTERPRET=1 before Python starts" if INTERPRETED else "unset TRITON_INTERPRET"
    if bool(triton.knobs.runtime.interpret) is not INTERPRETED:
        raise ValueError(
            f"TRITON_INTERPRET changed after triton was imported, which splits it in two: {how}"
        )
    if INTERPRETED and device.type != "cpu":
        raise ValueError(
            f"TRITON_INTERPRET is set, so the kernels run on the CPU, but the device is {device}: "
            "unset it before Python starts, or take device='cpu'"
        )
    if not INTERPRETED and device.type != "cuda":
        raise ValueError(
            f"attention_backend='triton' needs a GPU, and the device is {device}: take "
            "attention_backend='torch', or, to look at the kernels at work, set the environment "
            "variable TRITON_INTERPRET=1 before Python starts (about 7 ms per program)"
        )
    if not INTERPRETED and torch.version.hip is None:
        _require_ampere(device)


def _require_ampere(device: torch.device) -> None:
    major, minor = torch.cuda.get_device_capability(device)
    if major < 8:
        name = torch.cuda.get_device_name(device)
        raise ValueError(
            f"{name} has compute capability {major}.{minor}, and the kernels are made for 8.0 and "
            "above (below, their tiles do not fit the registers): take attention_backend='torch'"
        )
