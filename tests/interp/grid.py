"""Which shapes the attention kernels are tried with: pairwise by default, all in the slow tier."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from pairwise import pairwise

from minipaged.kernels.configs import KernelConfig

MAIN = {
    "block_size": [16, 1, 4, 6, 12, 32, 128],
    "dim": [64, 32, 80, 96, 128],
    "group": [4, 1, 3, 8, 24],
    "context": ["block+1", "0", "1", "block-1", "block", "long"],
    "dtype": [torch.float32, torch.float16, torch.bfloat16],
}
OTHERS = {"kv_heads": [1, 2], "packed": [False, True], "carry": [True, False], "tile": [16, 32]}
SPLITS = {"split": ["none", "auto", "one tile", "three tiles"]}
CHUNKS = {"queries": ["few", "one", "many"], "min_queries": [1, 2], "rows": [16, 32]}


def few(**more: list[Any]) -> list[dict[str, Any]]:
    """Every pair of two values somewhere."""
    return pairwise({**MAIN, **OTHERS, **more})


def every(**more: list[Any]) -> list[dict[str, Any]]:
    """All combinations of MAIN; the other factors take their own combinations in turn."""
    others = {**OTHERS, **more}
    turns = itertools.cycle(itertools.product(*others.values()))
    return [
        dict(zip((*MAIN, *others), (*values, *next(turns)), strict=True))
        for values in itertools.product(*MAIN.values())
    ]


def keys_of(context: str, block_size: int, tile: int) -> int:
    """Keys of a context named in MAIN; "long" is nine tiles and a bit."""
    lengths = {"0": 0, "1": 1, "long": 9 * tile + 5}
    near = {"block-1": block_size - 1, "block": block_size, "block+1": block_size + 1}
    return (lengths | near)[context]


def config(tile: int, carry: bool, rows: int = 16) -> KernelConfig:
    return KernelConfig(tile=tile, num_warps=4, num_stages=2, carry=carry, rows=rows)


def name_of(row: dict[str, Any]) -> str:
    return "-".join(str(value).removeprefix("torch.") for value in row.values())
