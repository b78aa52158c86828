"""The arithmetic behind the printed figures: no tensors, no clock."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from minipaged.kernels.configs import KernelConfig

INDEX_BYTES = 8
"""Of an entry of block_tables, seq_lens and query_start_loc: int64."""

Key = tuple[int, int]
"""A row of configs.py: head_dim and bytes of a number, both "up to"."""


class Heads(NamedTuple):
    """Query heads, KV heads and head_dim of a model's attention."""

    query: int
    kv: int
    dim: int

    @classmethod
    def parse(cls, text: str) -> Heads:
        """ "32/8/128" -> Heads(32, 8, 128); ValueError if it is not of that form."""
        try:
            query, kv, dim = (int(part) for part in text.split("/"))
        except ValueError:
            raise ValueError(f"--shape is {text!r}: give H/KV/D, such as 32/8/128") from None
        if min(query, kv, dim) < 1 or query % kv:
            raise ValueError(
                f"--shape is {text!r}: H, KV and D are at least 1, and H is a multiple of KV"
            )
        return cls(query, kv, dim)

    def __str__(self) -> str:
        return f"{self.query}/{self.kv}/{self.dim}"


def bytes_moved(heads: Heads, seq_lens: Sequence[int], block_size: int, itemsize: int) -> int:
    """Bytes that a decode step has to move at least: each K, V, q, output and table entry once.

    What splitting adds (pieces written and read again) is not in it: it is part of the cost.
    """
    keys_and_values = 2 * sum(seq_lens) * heads.kv * heads.dim * itemsize
    q_and_out = 2 * len(seq_lens) * heads.query * heads.dim * itemsize
    tables = sum(-(-length // block_size) for length in seq_lens) * INDEX_BYTES
    return keys_and_values + q_and_out + tables


def gb_per_s(num_bytes: int, us: float) -> float:
    """Bytes in microseconds as GB/s (10^9 bytes a second)."""
    return num_bytes / us / 1e3


def rotations(num_bytes: int, l2_bytes: int, times: int = 4, most: int = 128) -> int:
    """How many working sets of num_bytes to go through in turn, so that together they are at
    least `times` the L2 cache and none is still in it when its turn comes again."""
    return max(1, min(most, -(-times * l2_bytes // max(1, num_bytes))))


def split_size_of(pieces: int, longest: int, tile: int) -> int:
    """Keys in a piece, a multiple of the tile, such that `longest` keys are at most `pieces`."""
    tiles = max(1, -(-longest // tile))
    return -(-tiles // pieces) * tile


class Choice(NamedTuple):
    """What won for a row. ratio: its time to the shipped one's (geometric mean over the shapes;
    NaN if the shipped one did not run). measured: variants that ran at every shape."""

    config: KernelConfig
    ratio: float
    measured: int


def choose(
    times: Mapping[KernelConfig, Mapping[str, float]], shipped: KernelConfig, margin: float = 0.02
) -> Choice:
    """The variant that is fastest over all shapes; times[variant][shape] in any unit.

    Compared is the geometric mean over the shapes of the time to the shipped one's, so that a
    short shape counts as much as a long one. A gain of `margin` or less is noise: the shipped one
    stays. Variants that lack a shape do not compete.
    """
    shapes = {shape for measured in times.values() for shape in measured}
    complete = {c: t for c, t in times.items() if shapes and set(t) == shapes}
    if not complete:
        return Choice(shipped, math.nan, 0)
    base = complete.get(shipped) or next(iter(complete.values()))
    scores = {
        config: math.exp(math.fsum(math.log(t[s] / base[s]) for s in shapes) / len(shapes))
        for config, t in complete.items()
    }
    best = min(scores, key=scores.__getitem__)
    if shipped not in complete:
        return Choice(best, math.nan, len(complete))
    if scores[best] >= 1 - margin:
        best = shipped
    return Choice(best, scores[best], len(complete))


def config_text(config: KernelConfig) -> str:
    """A configuration as configs.py writes it, without what is as by default."""
    text = f"tile={config.tile}, num_warps={config.num_warps}, num_stages={config.num_stages}"
    text += "" if config.carry else ", carry=False"
    return f"KernelConfig({text}{f', rows={config.rows}' if config.rows != 16 else ''})"


def short_text(config: KernelConfig) -> str:
    """A configuration for a cell of a table."""
    text = f"tile {config.tile}, warps {config.num_warps}, stages {config.num_stages}"
    text += "" if config.carry else ", no carry"
    return text + (f", rows {config.rows}" if config.rows != 16 else "")


def table_text(name: str, rows: Mapping[Key, tuple[KernelConfig, str]]) -> str:
    """A table in the form in which configs.py holds it, a remark behind each row."""
    lines = [
        f"    {key}: {config_text(config)},{f'  # {remark}' if remark else ''}"
        for key, (config, remark) in rows.items()
    ]
    return "\n".join([f"{name} = {{", *lines, "}"])


def neighbours(shipped: KernelConfig, axes: Mapping[str, Sequence[Any]]) -> list[KernelConfig]:
    """The shipped variant, then those that differ from it in one of the axes."""
    one_off = [
        replace(shipped, **{axis: value})
        for axis, values in axes.items()
        for value in values
        if value != getattr(shipped, axis)
    ]
    return [shipped, *one_off]
