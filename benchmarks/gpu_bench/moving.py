"""Blocks copied and moved: the same bits must arrive, and nothing else may change."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from gpu_bench.cases import differing
from gpu_bench.figures import Heads
from minipaged.kernels import triton_backend

HEADS = Heads(2, 2, 72)
SHAPE = (6, 16, HEADS.kv, HEADS.dim)
"""Blocks of 2304 numbers: two whole chunks of the copy and a part of one."""


def _pool(dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.randn(SHAPE).to(dtype).to(device)


def _copied(dtype: torch.dtype, device: torch.device) -> int:
    """One after another: block 1 goes on to 2 and 3 before it is itself overwritten."""
    pairs = [(0, 1), (1, 2), (2, 3), (4, 1)]
    pool = _pool(dtype, device)
    expected = pool.clone()
    for source, target in pairs:
        expected[target] = expected[source].clone()
    triton_backend.copy_blocks(pool, pairs)
    return differing(pool, expected)


def _moved(source: str | None, target: str | None) -> Callable[[torch.dtype, torch.device], int]:
    def check(dtype: torch.dtype, device: torch.device) -> int:
        pairs = [(5, 0), (0, 4), (3, 1)]
        a = _pool(dtype, torch.device(source or device))
        b = _pool(dtype, torch.device(target or device))
        expected = b.clone()
        for one, other in pairs:
            expected[other] = a[one].to(b.device)
        triton_backend.move_blocks(a, b, pairs)
        return differing(b, expected)

    return check


CHECKS: dict[str, Callable[[torch.dtype, torch.device], int]] = {
    "copy": _copied,
    "move": _moved(None, None),
    "move to the host": _moved(None, "cpu"),
    "move from the host": _moved("cpu", None),
}
