"""The tables of configurations that the attention kernels ship: a row per head_dim and dtype.

A table and no autotuning: the choice must not depend on the batch, or a row's bits would. The
figures are chosen from what the compiler reports (registers, spills, shared memory: `minipaged
bench kernels --aot`); `benchmarks/gpu_kernels.py` measures the alternatives on a card and prints
the table that wins there.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KernelConfig:
    """How an attention kernel is compiled.

    tile: keys read at once, a power of two of at least 16 (the matrix units' smallest side).
    num_warps: groups of 32 threads that work on one program. num_stages: tiles under way at once
    (software pipelining). carry: look up the blocks of the next tile while this one is computed,
    so that its keys can be fetched ahead. rows: queries times heads in a tile of a chunk, at least.
    """

    tile: int
    num_warps: int
    num_stages: int
    carry: bool = True
    rows: int = 16


def next_power_of_2(number: int) -> int:
    """The smallest power of two that is at least `number` (>= 1)."""
    return 1 << (number - 1).bit_length()


def padded(number: int, least: int = 16) -> int:
    """Rows or columns of a tile that holds `number`: a power of two, at least 16 for the dot."""
    return max(least, next_power_of_2(number))


_DECODE = {
    # (padded head_dim, bytes a number), both "up to"
    (64, 2): KernelConfig(tile=64, num_warps=4, num_stages=3),
    (128, 2): KernelConfig(tile=64, num_warps=4, num_stages=3),
    (256, 2): KernelConfig(tile=32, num_warps=4, num_stages=2),
    (64, 4): KernelConfig(tile=32, num_warps=4, num_stages=2),
    (128, 4): KernelConfig(tile=16, num_warps=8, num_stages=3),
    (256, 4): KernelConfig(tile=16, num_warps=8, num_stages=2),
}

_PREFILL = {
    (64, 2): KernelConfig(tile=64, num_warps=4, num_stages=3, rows=64),
    (128, 2): KernelConfig(tile=32, num_warps=4, num_stages=3, rows=64),
    (256, 2): KernelConfig(tile=32, num_warps=4, num_stages=2, rows=32),
    (64, 4): KernelConfig(tile=32, num_warps=4, num_stages=2, rows=32),
    (128, 4): KernelConfig(tile=16, num_warps=8, num_stages=3, rows=16),
    (256, 4): KernelConfig(tile=16, num_warps=8, num_stages=2, rows=16),
}


def decode_config(head_dim: int, itemsize: int) -> KernelConfig:
    """The decode kernel's row for a head_dim and the bytes of a number. ValueError if none."""
    return _row(_DECODE, head_dim, itemsize)


def prefill_config(head_dim: int, itemsize: int) -> KernelConfig:
    """The prefill kernel's row for a head_dim and the bytes of a number. ValueError if none."""
    return _row(_PREFILL, head_dim, itemsize)


def _row(table: dict[tuple[int, int], KernelConfig], head_dim: int, itemsize: int) -> KernelConfig:
    for (dim, size), config in table.items():
        if padded(head_dim) <= dim and itemsize <= size:
            return config
    raise ValueError(
        f"no kernel configuration for head_dim {head_dim} with {itemsize} bytes a number: there "
        "are some up to head_dim 256 in float16, bfloat16 and float32; for others use "
        "attention_backend='torch'"
    )
