"""Exercises 01.1 kv_bytes_per_token and 01.2 memory_use: two functions of numbers.

The oracles count, layer by layer and request by request; any formula that comes to the same passes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from minipaged.course.checks.base import Check, Row
from minipaged.course.script import Case, Operation

# --- 01.1 kv_bytes_per_token ---------------------------------------------------------------------


def bytes_visible() -> list[Case]:
    """Four published models, a model small enough to count, and two other number formats."""
    return [
        _case("one of each", "One layer, one head, one number in it, of one byte.", 1, 1, 1, 1),
        _case("Llama-2-7B", "32 layers, each of its 32 heads has its own KV.", 32, 32, 128),
        _case("Llama-2-13B", "40 layers, 40 KV heads.", 40, 40, 128),
        _case("Llama-3-8B", "32 query heads, but groups of four share one KV head.", 32, 8, 128),
        _case("Llama-3-70B", "80 layers, 64 query heads, 8 KV heads.", 80, 8, 128),
        _case("in 32 bits", "The first model again, each number in four bytes.", 32, 32, 128, 4),
        _case("in 8 bits", "Keys and values pressed into one byte a number.", 80, 8, 128, 1),
    ]


def bytes_hidden(seed: int) -> list[Case]:
    """Twelve models of other shapes."""
    rng = random.Random(f"01.1/{seed}")
    shapes = [
        (rng.randrange(1, 130), rng.randrange(1, 99), rng.choice((3, 64, 80, 96, 128, 256)))
        for _ in range(12)
    ]
    story = "A model of another shape."
    return [
        _case("hidden", story, *shape, *extra)
        for shape, extra in zip(shapes, [(), (2,), (1,), (4,)] * 3, strict=True)
    ]


def _case(name: str, story: str, *args: Any) -> Case:
    return Case(name, story, (Operation(args),))


def count_bytes(num_layers: int, num_kv_heads: int, head_dim: int, dtype_bytes: int = 2) -> int:
    """Counted layer by layer: each layer keeps a key and a value of every KV head."""
    one_vector = head_dim * dtype_bytes
    one_layer = num_kv_heads * (one_vector + one_vector)
    return sum(one_layer for _ in range(num_layers))


BYTES_MISTAKES: tuple[tuple[Callable[..., float], str], ...] = (
    (
        lambda layers, heads, dim, width=2: layers * heads * dim * width,
        "This is half of it: each layer keeps a key and, beside it, a value of the same size.",
    ),
    (
        lambda layers, heads, dim, width=2: 2 * layers * heads * dim,
        "This counts numbers, not bytes: multiply by dtype_bytes.",
    ),
    (
        lambda layers, heads, dim, width=2: 4 * layers * heads * dim,
        "dtype_bytes makes no difference to the result: is a 2 written where it belongs?",
    ),
    (
        lambda layers, heads, dim, width=2: 2 * heads * dim * width,
        "This is one layer. Every layer keeps keys and values of its own.",
    ),
    (
        lambda layers, heads, dim, width=2: 2 * layers * dim * width,
        "This is one head. Every KV head has a key and a value of its own.",
    ),
    (
        lambda layers, heads, dim, width=2: 16 * layers * heads * dim * width,
        "This is in bits. Asked for are bytes.",
    ),
    (
        lambda layers, heads, dim, width=2: 2 * layers * heads * dim * width // 1024,
        "This is in KiB. Asked for are bytes.",
    ),
)

# --- 01.2 memory_use -----------------------------------------------------------------------------


def use_visible() -> list[Case]:
    """Each border of a block once, then several requests at once."""
    hundred = random.Random(2026)
    lengths = [hundred.randint(40, 600) for _ in range(100)]
    return [
        _case("one request", "Two blocks are full and five tokens stand in a third.", [37], 64, 16),
        _case("exactly full", "Three full blocks; no fourth is begun.", [48], 64, 16),
        _case("two requests", "Each begins a block that it does not fill.", [17, 17], 32, 16),
        _case("at the limit", "As long as the model allows, in both ways.", [32, 1], 32, 8),
        _case("blocks of one", "Nothing can be left over.", [5, 9, 2], 16, 1),
        _case("no token yet", "The stretch is reserved, a block is not.", [0, 3], 100, 4),
        _case("nobody", "No request, no memory.", [], 2048, 16),
        _case("a hundred", "Lengths from 40 to 600, the experiment's own.", lengths, 2048, 16),
    ]


def use_hidden(seed: int) -> list[Case]:
    """Ten further sets of requests."""
    rng = random.Random(f"01.2/{seed}")
    cases = []
    for count in (1, 1, 2, 3, 5, 8, 20, 50, 200, 0):
        limit, size = rng.randrange(64, 5000), rng.choice((1, 3, 4, 16, 32, 100, 128))
        lengths = [rng.choice((rng.randrange(limit + 1), size)) for _ in range(count)]
        cases.append(
            _case("hidden", "Other requests.", [min(n, limit) for n in lengths], limit, size)
        )
    return cases


def count_slots(lengths: list[int], max_model_len: int, block_size: int) -> tuple[int, int, int]:
    """Counted request by request; blocks are taken one at a time, as a request grows."""
    reserved = used = in_blocks = 0
    for length in lengths:
        reserved += max_model_len
        used += length
        in_blocks += len(range(0, length, block_size)) * block_size
    return reserved, used, in_blocks


def _slots(reserved: Any, used: Any, in_blocks: Any) -> Callable[..., Any]:
    """A mistake, from three functions of (lengths, limit, size)."""
    return lambda n, limit, size: (
        reserved(n, limit, size),
        used(n, limit, size),
        in_blocks(n, limit, size),
    )


def _reserved(n: list[int], limit: int, size: int) -> int:
    return count_slots(n, limit, size)[0]


def _used(n: list[int], limit: int, size: int) -> int:
    return sum(n)


def _in_blocks(n: list[int], limit: int, size: int) -> int:
    return count_slots(n, limit, size)[2]


USE_MISTAKES: tuple[tuple[Callable[..., Any], str], ...] = (
    (
        _slots(_reserved, _used, lambda n, limit, size: -(-sum(n) // size) * size),
        "The blocks are counted for all requests together. Two requests never share a block here: "
        "round up for each request, then add.",
    ),
    (
        _slots(_reserved, _used, lambda n, limit, size: sum(k // size for k in n) * size),
        "The blocks are rounded down, so the tokens in a last, partly filled block have no slots.",
    ),
    (
        _slots(_reserved, _used, lambda n, limit, size: sum(k // size + 1 for k in n) * size),
        "One block is added for every request, also where the last one is exactly full or no token "
        "is there.",
    ),
    (
        _slots(_reserved, _used, lambda n, limit, size: _in_blocks(n, limit, size) // size),
        "The third number counts blocks. Asked for are the slots in them.",
    ),
    (
        _slots(lambda n, limit, size: limit, _used, _in_blocks),
        "One reservation is counted for all. Every request has one of its own.",
    ),
    (
        _slots(lambda n, limit, size: max(n, default=0) * len(n), _used, _in_blocks),
        "The longest of these requests is reserved for each. Nobody knows beforehand how long it "
        "will be: the reservation is max_model_len.",
    ),
    (
        _slots(
            _reserved,
            lambda n, limit, size: _reserved(n, limit, size) - sum(n),
            lambda n, limit, size: _in_blocks(n, limit, size),
        ),
        "The second number is the waste. Asked for are the slots that hold a token.",
    ),
    (
        lambda n, limit, size: (_reserved(n, limit, size), _in_blocks(n, limit, size), sum(n)),
        "Second and third number have changed places.",
    ),
    (
        _slots(
            _reserved,
            _used,
            lambda n, limit, size: sum(max(1, -(-k // size)) for k in n) * size,
        ),
        "All is right but for a request without tokens: it holds no block at all.",
    ),
)


def _diagnose(mistakes: Sequence[tuple[Callable[..., Any], str]], rows: Sequence[Row]) -> str:
    """The first misconception that gives all of the answers, wrong and right ones."""
    for mistake, sentence in mistakes:
        if all(mistake(*row.args) == row.got for row in rows):
            return sentence
    return ""


KV_BYTES = Check(
    bytes_visible,
    bytes_hidden,
    lambda case: [count_bytes(*o.args) for o in case.operations],
    lambda rows: _diagnose(BYTES_MISTAKES, rows),
)
MEMORY_USE = Check(
    use_visible,
    use_hidden,
    lambda case: [count_slots(*o.args) for o in case.operations],
    lambda rows: _diagnose(USE_MISTAKES, rows),
)
