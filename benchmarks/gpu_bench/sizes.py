"""How much each section of gpu_kernels.py measures: on a card, and in a dry run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpu_bench.figures import Heads, Key
from minipaged.kernels import configs


def turn(key: Key) -> tuple[int, bool, int]:
    """To sort rows of the tables by: those first that most models take, 16 bit and head_dim 128."""
    return key[1], key[0] != 128, key[0]


DECODE_KEYS = tuple(sorted(configs._DECODE, key=turn))
PREFILL_KEYS = tuple(sorted(configs._PREFILL, key=turn))


@dataclass(frozen=True)
class Sizes:
    """seconds: what each section may take; empty for no limit. others: heads besides the model's
    that correctness is looked at for. lens: contexts of its cases. big: try a pool beyond 2^31
    numbers. tuned: (batch, context) that variants are timed at; chunks: (sequences, queries each,
    context, decodes beside them)."""

    heads: Heads
    others: tuple[tuple[Heads, int], ...]
    lens: tuple[int, ...]
    batches: tuple[int, ...]
    contexts: tuple[int, ...]
    layouts_at: tuple[int, int]
    split_batches: tuple[int, ...]
    pieces: tuple[int, ...]
    tuned: tuple[tuple[int, int], ...]
    chunks: tuple[int, int, int, int]
    axes: dict[str, tuple[Any, ...]]
    full: bool
    copy_bytes: int
    block_sizes: tuple[int, ...] = (8, 16, 32, 64, 128)
    tuned_heads: tuple[int, int] = (32, 8)
    seconds: dict[str, float] = field(default_factory=dict)


AXES: dict[str, tuple[Any, ...]] = {
    "carry": (True, False),
    "num_stages": (2, 3, 4),
    "tile": (32, 64, 128),
    "num_warps": (4, 8),
}

SHARES = {"correctness": 0.27, "decode": 0.24, "layouts": 0.08, "splits": 0.09, "variants": 0.32}
"""Of the time that the script may take; what is left is for starting and for others' kernels."""


def on_a_card(heads: Heads, seconds: float) -> Sizes:
    """What a card measures in `seconds` in all."""
    return Sizes(
        heads=heads,
        others=(
            (Heads(8, 8, 64), 16),
            (Heads(9, 3, 80), 12),
            (Heads(32, 4, 96), 1),
            (Heads(48, 2, 128), 32),
            (Heads(4, 2, 256), 128),
        ),
        lens=(5, 0, 1, 63, 64, 65, 700, 3000),
        batches=(1, 8, 64, 256),
        contexts=(1024, 4096, 16384),
        layouts_at=(64, 4096),
        split_batches=(1, 8),
        pieces=(1, 2, 4, 8, 16, 32, 64, 128),
        tuned=((64, 4096), (8, 4096)),
        chunks=(4, 512, 2048, 32),
        axes=AXES,
        full=True,
        copy_bytes=4 * 2**30,
        seconds={name: share * seconds for name, share in SHARES.items()},
    )


def dry(heads: Heads | None) -> Sizes:
    """Every section and table, as small as can be, with no time limit."""
    return Sizes(
        heads=heads or Heads(2, 1, 32),
        others=((Heads(6, 2, 20), 6),),
        lens=(5, 0, 1, 70),
        batches=(1, 2),
        contexts=(16, 128),
        layouts_at=(1, 128),
        split_batches=(1,),
        pieces=(1, 2, 4),
        tuned=((1, 32),),
        chunks=(1, 3, 8, 1),
        axes={"carry": (True, False), "tile": (16, 32)},
        full=False,
        copy_bytes=2**20,
        tuned_heads=(2, 1),
    )
