"""What every launch of an attention kernel needs, worked out from the tensors once."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from minipaged.kernels.configs import KernelConfig
from minipaged.kernels.constants import attention_constants, attention_options
from minipaged.kernels.fit import require_fit
from minipaged.kernels.layouts import PoolShape, pool_shape

INTERPRETED = not isinstance(tl.cdiv, triton.JITFunction)
"""Whether the kernels of this process run in Triton's interpreter, on CPU tensors.

TRITON_INTERPRET=1 decides it, set before triton is first imported: its own functions are made for
one or the other then. About 7 ms per program: to be looked at, not to serve with.
"""

LOG2_E = 1 / math.log(2)


def on_device(tensor: Tensor) -> AbstractContextManager[None]:
    """To launch in: Triton takes the current device, whatever device the tensors are on."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()


class Launch(NamedTuple):
    """The queries, contiguous; the pool's shape; and what the kernels are compiled for.

    scale: turns q k into a score in base 2. constants: the kernels' constexpr parameters that
    they have in common. options: num_warps, num_stages, and what holds for all kernels.
    """

    q: Tensor
    shape: PoolShape
    group: int
    scale: float
    config: KernelConfig
    constants: dict[str, Any]
    options: dict[str, Any]


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
    upcast = INTERPRETED and q.dtype is torch.bfloat16
    constants = attention_constants(shape, group, config, upcast=upcast)
    scale = LOG2_E / math.sqrt(dim)
    options = attention_options(config)
    return Launch(q.contiguous(), shape, group, scale, config, constants, options)
