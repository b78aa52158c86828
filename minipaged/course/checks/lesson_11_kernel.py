"""11.3 paged_decode(q, k_pool, v_pool, meta): the cases. The oracle is lesson 04's plain one.

Everything that nobody wrote to is NaN: slots behind the last token, blocks of nobody, and the
output before the launch.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from minipaged.course.checks.base import Check, Close
from minipaged.course.checks.lesson_11_told import FAR, call_of, explain, picture, right
from minipaged.course.plain import Array, Kept
from minipaged.course.script import Case, Operation

Rows = list[tuple[int, list[int], int]]  # of each sequence: keys, blocks, queries
Shape = tuple[int, int, int, int]
NAN = math.nan
TOLERANCE = (1e-4, 1e-5)  # relative and absolute: what another order of summation may change


def visible() -> list[Case]:
    """The cases in the notebook."""
    return [*_one_program(), *_tiles(), *_memory(), *_several()]


def _one_program() -> list[Case]:
    """One query head, or the heads of one KV head, over one tile."""
    logs = [math.log(n) for n in (1, 2, 4, 1)]
    return [
        _case(
            "by block number",
            "Every value is the number of its block, and all scores are 0. The table says [4, 1]: "
            "the mean is 2.5.",
            (9, 4, 1, 1),  # 16 numbers from any slot of the table on are inside the pool
            [(8, [4, 1], 1)],
            _zeros(36),
            _numbered(36, 4),
        ),
        _case(
            "by hand",
            "Lesson 04's four tokens in blocks of two.",
            (3, 2, 1, 1),
            [(4, [2, 0], 1)],
            [*logs[2:], NAN, NAN, *logs[:2]],
            [2.0, 16.0, NAN, NAN, 8.0, 4.0],
            q=[1.0],
        ),
        _case(
            "low scores",
            "All scores are about -5, and the tile has 60 places without a key.",
            (1, 4, 1, 1),
            [(4, [0], 1)],
            [-5.0, -6.0, -5.5, -7.0],
            [1.0, 2.0, 3.0, 4.0],
            q=[1.0],
        ),
        _case(
            "high scores",
            "Scores of 200 to 203: a float32 holds no e to the 200.",
            (1, 4, 1, 1),
            [(4, [0], 1)],
            [200.0, 201.0, 203.0, 202.0],
            [1.0, 2.0, 3.0, 4.0],
            q=[1.0],
        ),
        _drawn("four numbers a head", "head_dim is 4: scores are halved.", 7, (2, 2, 1, 4),
               [(4, [1, 0], 1)], 1),
        _case(
            "in half precision",
            "The numbers are float16, and so is the result.",
            (3, 4, 1, 2),
            [(8, [2, 0], 1)],
            _zeros(24),
            _numbered(24, 8),
            dtype="float16",
        ),
    ]  # fmt: skip


def _tiles() -> list[Case]:
    """Contexts of more than one tile of 64 keys."""
    return [
        _case(
            "the highest first",
            "70 keys in blocks of 16; the highest score is in the first tile.",
            *_long([3.0] + [0.0] * 69, [40.0] + [float(n % 7) for n in range(69)]),
            q=[1.0],
        ),
        _case(
            "the highest last",
            "70 keys in blocks of 16; the highest score is in the second tile.",
            *_long([0.0] * 69 + [3.0], [float(n % 7) for n in range(69)] + [40.0]),
            q=[1.0],
        ),
        _drawn("three tiles", "129 keys in blocks of 12.", 8, (12, 12, 1, 2),
               [(129, [7, 3, 11, 0, 5, 1, 9, 10, 2, 8, 4], 1)], 2, height=2),
    ]  # fmt: skip


def _memory() -> list[Case]:
    """What is nobody's, and what is far away."""
    wide = "head_dim 80 in a tile of 128: behind it another head begins. Slot 3 is NaN."
    return [
        _drawn("a begun block", "5 tokens in blocks of 4: the last three slots are NaN.", 9,
               (3, 4, 1, 2), [(5, [2, 0], 1)], 1),
        _drawn("left-over entries", "Entries of the table behind the last key mean nothing.", 10,
               (4, 4, 1, 2), [(6, [2, 1, 3, 3], 1)], 1),
        _drawn("head_dim 80", wide, 11, (1, 4, 2, 80), [(3, [0], 1)], 2),
        _far("block 131,072", "8 KV heads, blocks of 16,384 numbers: this block begins at number 2 "
             "to the 31. A value is the number of its KV head.", 131_072, 5),
    ]  # fmt: skip


def _several() -> list[Case]:
    """Heads that share, sequences, chunks."""
    return [
        _case(
            "48 heads share 2",
            "48 query heads, 2 KV heads; a value is the number of its KV head.",
            (2, 2, 2, 1),
            [(3, [1, 0], 1)],
            [*_zeros(2), NAN, NAN, *_zeros(4)],
            [0.0, 1.0, NAN, NAN, 0.0, 1.0, 0.0, 1.0],
            heads=48,
        ),
        _drawn("groups of 3", "6 query heads, 2 KV heads.", 12, (2, 4, 2, 2), [(5, [1, 0], 1)], 6),
        _drawn("no keys", "Three sequences with 5, 0 and 3 keys: the second reads zeros.", 2,
               (4, 4, 1, 2), [(5, [1, 3], 1), (0, [0, 0], 1), (3, [2, 0], 1)], 1),
        _drawn("a prompt", "The last three of 5 tokens: each reads the keys up to its own.", 3,
               (3, 2, 1, 2), [(5, [2, 0, 1], 3)], 2),
    ]  # fmt: skip


def hidden(seed: int) -> list[Case]:
    """5 steps of other shapes, and a pool beyond 32 bits."""
    rng = random.Random(f"11.3/{seed}")
    block, written = 2**19 + rng.randrange(100), rng.randrange(2, 16)
    far = _far("hidden", "A block far away.", block, written, kv_heads=2)
    return [*(_hidden(rng, k) for k in range(5)), far]


def _hidden(rng: random.Random, k: int) -> Case:
    size, kv_heads = (4, 1, 12, 16, 3)[k], 1 + k % 2
    keys = (70, 0, 129, 65, 3)[k] + (k != 1) * rng.randrange(2)
    dim = (2, 3, 1, 4, 80)[k]
    blocks = -(-keys // size)
    num_blocks = blocks + 3
    order = rng.sample(range(num_blocks), num_blocks)
    queries = 2 if k == 4 else 1
    rows: Rows = [(keys, order[:blocks] + [order[blocks]] * 2, queries)]
    if k == 1:
        rows.append((min(2, size), [order[blocks + 1]] * 3, 1))
    group = (2, 3, 5, 2, 3)[k]
    height = (3, 1, 2, 40)[k % 4]  # at 40 a float32 holds no exponential of a score
    told = ("hidden", "A step of another shape.")
    shape = (num_blocks, size, kv_heads, dim)
    return _drawn(*told, rng.random(), shape, rows, group * kv_heads, height=height)


def _far(name: str, story: str, block: int, written: int, kv_heads: int = 8) -> Case:
    """One query token, as many query heads of 128 as KV heads, a context of one far block."""
    ids = tuple(float(head) for head in range(kv_heads))
    pools = [
        Operation((values, 128, 16, block, written), "far_pool", keep=kept)
        for kept, values in (("k_pool", (0.0,) * kv_heads), ("v_pool", ids))
    ]
    make = Operation(_meta([(written, [block], 1)]), "AttentionMeta", keep=FAR)
    q = Array.of("float32", (1, kv_heads, 128), [1.0] * 128 * kv_heads)
    ask = Operation((q, Kept("k_pool"), Kept("v_pool"), Kept(FAR)))
    return Case(name, story, (*pools, make, ask))


def _zeros(count: int) -> list[float]:
    return [0.0] * count


def _numbered(count: int, block: int) -> list[float]:
    """In every place the number of its block."""
    return [float(n // block) for n in range(count)]


def _long(scores: list[float], values: list[float]) -> tuple[Shape, Rows, list[float], list[float]]:
    """These keys in blocks of 16 in the order of a table; the rest is NaN."""
    table = [3, 0, 4, 1, 2]
    pools = []
    for numbers in (scores, values):
        pool = [NAN] * 80
        for position, number in enumerate(numbers):
            pool[table[position // 16] * 16 + position % 16] = number
        pools.append(pool)
    return (5, 16, 1, 1), [(len(scores), table, 1)], pools[0], pools[1]


def _meta(rows: Rows) -> tuple[Array, Array, Array]:
    """query_start_loc, seq_lens, block_tables."""
    starts = [sum(queries for _, _, queries in rows[:i]) for i in range(len(rows) + 1)]
    width = max(len(blocks) for _, blocks, _ in rows)
    tables = [b for _, blocks, _ in rows for b in [*blocks, *[blocks[-1]] * (width - len(blocks))]]
    return (
        Array.of("int64", (len(starts),), starts),
        Array.of("int64", (len(rows),), [keys for keys, _, _ in rows]),
        Array.of("int64", (len(rows), width), tables),
    )


def _case(
    name: str,
    story: str,
    shape: Shape,
    rows: Rows,
    keys: Sequence[float],
    values: Sequence[float],
    *,
    heads: int = 1,
    q: Sequence[float] = (),
    dtype: str = "float32",
) -> Case:
    """A step; without q all queries are 0."""
    tokens = sum(queries for _, _, queries in rows)
    asked = q or _zeros(tokens * heads * shape[3])
    arrays = (
        Array.of(dtype, (tokens, heads, shape[3]), asked),
        *(Array.of(dtype, shape, numbers) for numbers in (keys, values)),
    )
    make = Operation(_meta(rows), "AttentionMeta", keep="meta")
    return Case(name, story, (make, Operation((*arrays, Kept("meta")))))


def _drawn(
    name: str, story: str, seed: float, shape: Shape, rows: Rows, heads: int, *, height: float = 1
) -> Case:
    """A step with random numbers in all slots that were written, and NaN in the others."""
    rng = random.Random(seed)
    size, row = shape[1], shape[2] * shape[3]
    written = {blocks[p // size] * size + p % size for keys, blocks, _ in rows for p in range(keys)}

    def pool() -> list[float]:
        slots = range(shape[0] * size)
        numbers = (_some(rng, row) if slot in written else [NAN] * row for slot in slots)
        return [x for slot in numbers for x in slot]

    tokens = sum(queries for _, _, queries in rows)
    q = [height * x for x in _some(rng, tokens * heads * shape[3])]
    return _case(name, story, shape, rows, pool(), pool(), heads=heads, q=q)


def _some(rng: random.Random, count: int) -> list[float]:
    return [round(rng.uniform(-2, 2), 2) for _ in range(count)]


def _oracle(case: Case) -> list[Any]:
    return [Close(right(call_of(case)), *TOLERANCE)]


CHECK = Check(visible, hidden, _oracle, explain=explain, picture=picture, tensors=True)
