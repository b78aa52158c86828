"""What every launch of an attention kernel needs, worked out from the tensors once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from minipaged.kernels.configs import KernelConfig, padded
from minipaged.kernels.fit import require_fit
from minipaged.kernels.layouts import PoolShape, pool_shape

INTERPRETED = not isinstance(tl.cdiv, triton.JITFunction)
"""Whether the kernels of this process run in Triton's interpreter, on CPU tensors.

TRITON_INTERPRET=1 decides it, set before triton is first imported: its own functions are made for
one or the other then. About 7 ms per program: to be looked at, not to serve with.
"""

LOG2_E = 1 / math.log(2)


class Launch(NamedTuple):
    """The queries, contiguous; the pool's shape; and what the kernels are compiled for.

    scale: turns q k into a score in base 2. constants: the kernels' constexpr parameters that
    they have in common. options: num_warps and num_stages.
    """

    q: Tensor
    shape: PoolShape
    group: int
    scale: float
    config: KernelConfig
    constants: dict[str, Any]
    options: dict[str, int]


def prepare(
    q: Tensor,
    k_pool: Tensor,
    v_pool: Tensor,
    config: KernelConfig | Callable[[int, int], KernelConfig],
) -> Launch:
    """Check that the tensors fit (ValueError if not) and work out what the launch needs.

    config: a configuration, or what gives one for a head_dim and bytes per number.
    """
    shape = pool_shape(k_pool)
    require_fit(q, shape, k_pool.dtype, v_pool)
    dim, group = shape.head_dim, q.shape[1] // shape.kv_heads
    config = config(dim, q.dtype.itemsize) if callable(config) else config
    constants = {
        "GROUP": group,
        "KV": shape.kv_heads,
        "HEAD_DIM": dim,
        "DIM": padded(dim),
        "BLOCK_SIZE": shape.block_size,
        "X": shape.x,
        "TILE": config.tile,
        "CARRY": config.carry,
        "UPCAST": INTERPRETED and q.dtype is torch.bfloat16,
    }
    options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
    scale = LOG2_E / math.sqrt(dim)
    return Launch(q.contiguous(), shape, group, scale, config, constants, options)
