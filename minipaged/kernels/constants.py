"""What each kernel is compiled for: its compile-time parameters and Triton's options.

One place for the launches (triton_launch.py and those that use it) and for compiling without a
card (aot_specs.py): what is looked at there is what runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minipaged.kernels.configs import KernelConfig, padded

if TYPE_CHECKING:
    from minipaged.kernels.layouts import PoolShape

COPY_CHUNK = 1024
"""Numbers that one program of the block copy moves."""

# Said and not left to Triton, whose default is to change from on to off in 3.10: whether a * b + c
# is rounded once or twice must not depend on the version.
_ALWAYS: dict[str, Any] = {"enable_fp_fusion": True}

MERGE_OPTIONS = {"num_warps": 1, **_ALWAYS}
WRITE_OPTIONS = {"num_warps": 1, **_ALWAYS}
COPY_OPTIONS = {"num_warps": 4, **_ALWAYS}


def pool_constants(shape: PoolShape) -> dict[str, Any]:
    """The parameters that say where a number lies in the pools: all that write_kernel has."""
    return {
        "KV": shape.kv_heads,
        "HEAD_DIM": shape.head_dim,
        "DIM": padded(shape.head_dim),
        "BLOCK_SIZE": shape.block_size,
        "X": shape.x,
    }


def attention_constants(
    shape: PoolShape, group: int, config: KernelConfig, *, upcast: bool = False
) -> dict[str, Any]:
    """What decode and prefill have in common. group: query heads that share a KV head."""
    return {
        **pool_constants(shape),
        "GROUP": group,
        "TILE": config.tile,
        "CARRY": config.carry,
        "UPCAST": upcast,
    }


def attention_options(config: KernelConfig) -> dict[str, Any]:
    """num_warps and num_stages of a configuration, and what holds for all kernels."""
    return {"num_warps": config.num_warps, "num_stages": config.num_stages, **_ALWAYS}


def decode_rows(group: int) -> dict[str, int]:
    """ROWS of the decode kernel: a row per query head that shares the KV head."""
    return {"ROWS": padded(group)}


def prefill_rows(group: int, config: KernelConfig) -> dict[str, int]:
    """ROWS of the prefill kernel, and how many neighbouring QUERIES they hold."""
    rows = max(padded(group), config.rows)
    return {"QUERIES": rows // group, "ROWS": rows}


def merge_constants(head_dim: int) -> dict[str, int]:
    """The parameters of the merge."""
    return {"HEAD_DIM": head_dim, "DIM": padded(head_dim)}


def copy_constants(block_numel: int) -> dict[str, int]:
    """The parameters of the block copy. block_numel: numbers of one block of a pool."""
    return {"BLOCK_NUMEL": block_numel, "CHUNK": COPY_CHUNK}
