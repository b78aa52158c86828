"""04.3 paged_attention(q, k_pool, v_pool, meta): the cases, and the oracle in plain numbers."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from minipaged.course.checks.base import Check, Close
from minipaged.course.checks.lesson_04_plain import attention
from minipaged.course.checks.lesson_04_told import call_of, explain, picture
from minipaged.course.plain import Array, Kept
from minipaged.course.script import Case, Operation

Meta = tuple[Array, Array, Array]
Step = tuple[tuple[Array, Array, Array], Meta]
NAN = math.nan
LOGS = [math.log(n) for n in (1, 2, 4, 1)]
# relative and absolute: what another order of summation may change
TOLERANCE = {"float32": (1e-4, 1e-5), "float64": (1e-9, 1e-9)}


def visible() -> list[Case]:
    """The cases in the notebook."""
    return [*_sums(), *_places(), *_requests()]


def _sums() -> list[Case]:
    """Where the weights come from."""
    ids, zeros = _block_ids()
    hand_k, hand_v = ([*numbers[2:], 9.0, 9.0, *numbers[:2]] for numbers in (LOGS, [8, 4, 2, 16]))
    keys, values = _pool(3, 2, hand_k), _pool(3, 2, hand_v)
    return [
        _case(
            "by block number",
            "Every value is the number of its block, and all scores are 0. The table says [3, 1]: "
            "the mean is 2.",
            _one([[0.0]], zeros, ids, 8, [3, 1]),
        ),
        _case(
            "by hand",
            "The lesson's four tokens in blocks of two; block 1 is somebody else's.",
            _one([[1.0]], keys, values, 4, [2, 0]),
        ),
        _case(
            "the highest first",
            "The first block has the highest score.",
            _one([[1.0]], keys, values, 4, [0, 2]),
        ),
        _case(
            "four numbers a head",
            "head_dim is 4: scores are divided by 2.",
            _drawn(7, [[4, [1, 0], 1]], (2, 2, 1, 4), heads=1),
        ),
        _case(
            "high scores",
            "Scores of 200 to 203: a float32 holds no e to the 200.",
            _one(
                [[1.0]],
                _pool(2, 2, [200.0, 201.0, 203.0, 202.0]),
                _pool(2, 2, [1.0, 2.0, 3.0, 4.0]),
                4,
                [0, 1],
            ),
        ),
    ]


def _places() -> list[Case]:
    """Which slots are read, and which are not."""
    ids, zeros = _block_ids()
    return [
        _case(
            "a begun block",
            "5 tokens in blocks of 4: the last three slots were never written (NaN).",
            _one(
                [[1.0]],
                _pool(3, 4, [1.0, NAN, NAN, NAN, 9.0, 9.0, 9.0, 9.0, 0.0, 2.0, 1.0, 0.0]),
                _pool(3, 4, [5.0, NAN, NAN, NAN, 9.0, 9.0, 9.0, 9.0, 1.0, 2.0, 3.0, 4.0]),
                5,
                [2, 0],
            ),
        ),
        _case(
            "left-over entries",
            "Entries behind the last token's block mean nothing.",
            _one([[0.0]], zeros, ids, 6, [2, 1, 999, -1]),
        ),
        _case(
            "shared KV heads",
            "6 query heads, 2 KV heads; a value is the number of its KV head.",
            _one([[0.0]] * 6, _pool(2, 2, [0.0] * 8, 2), _pool(2, 2, [0.0, 1.0] * 4, 2), 3, [1, 0]),
        ),
    ]


def _requests() -> list[Case]:
    """Several queries at once, and another dtype."""
    return [
        _case(
            "no keys",
            "Three requests with 5, 0 and 3 keys: the second reads nothing, so zeros.",
            _drawn(2, [[5, [1, 3], 1], [0, [0, 0], 1], [3, [2, 0], 1]], (4, 4, 1, 2), heads=1),
        ),
        _case(
            "a prompt",
            "The last three of 5 tokens: each reads the keys up to its own.",
            _drawn(3, [[5, [2, 0, 1], 3]], (3, 2, 1, 2), heads=2),
        ),
        _case(
            "in 64 bits",
            "All numbers are float64, and so is the result.",
            _drawn(4, [[4, [1, 0], 1]], (2, 3, 2, 2), heads=4, dtype="float64"),
        ),
    ]


def _block_ids() -> tuple[Array, Array]:
    """Pools of 4 blocks of 4: values that are the numbers of their blocks, and keys of 0."""
    return _pool(4, 4, [float(slot // 4) for slot in range(16)]), _pool(4, 4, [0.0] * 16)


def hidden(seed: int) -> list[Case]:
    """10 steps of other shapes."""
    rng = random.Random(f"04.3/{seed}")
    return [_hidden(rng, k) for k in range(10)]


def _hidden(rng: random.Random, k: int) -> Case:
    size, kv_heads = (1, 2, 3, 4, 8)[k % 5], 1 + k % 2
    shape = (12, size, kv_heads, (1, 2, 3, 4)[k % 4])
    rows, free = [], rng.sample(range(12), 12)
    for _ in range(1 + k % 3):
        blocks = [free.pop() for _ in range(rng.randrange(1, 5))]
        keys = 0 if k % 6 == 5 else rng.randrange((len(blocks) - 1) * size, len(blocks) * size) + 1
        rows.append([keys, blocks, min(max(keys, 1), 1 + k % 4)])
    heads, dtype = kv_heads * (1, 3, 2)[k % 3], ("float32", "float64")[k % 4 == 3]
    arrays, meta = _drawn(
        rng.random(), rows, shape, heads=heads, dtype=dtype, height=(1, 30)[k % 2]
    )
    return _case("hidden", "A step of another shape.", (arrays, _with_left_overs(meta)))


def _with_left_overs(meta: Meta) -> Meta:
    """The same tables with two more entries each, of no block of the pool."""
    starts, seq_lens, tables = meta
    rows, width = tables.shape
    entries = list(tables.numbers())
    longer = [n for i in range(rows) for n in (*entries[i * width : (i + 1) * width], 999, -999)]
    return starts, seq_lens, Array.of("int64", (rows, width + 2), longer)


def _pool(num_blocks: int, block_size: int, numbers: Sequence[float], kv_heads: int = 1) -> Array:
    """A pool with one number a head."""
    return Array.of("float32", (num_blocks, block_size, kv_heads, 1), numbers)


def _one(
    q: list[list[float]], k_pool: Array, v_pool: Array, context: int, table: list[int]
) -> Step:
    """One query token of one request."""
    query = Array.of(k_pool.dtype, (1, len(q), len(q[0])), [x for head in q for x in head])
    return (query, k_pool, v_pool), _meta([[context, table, 1]])


def _meta(rows: list[list[Any]]) -> Meta:
    """query_start_loc, seq_lens, block_tables of rows (keys, blocks, queries)."""
    starts = [sum(row[2] for row in rows[:i]) for i in range(len(rows) + 1)]
    width = max(len(blocks) for _, blocks, _ in rows)
    tables = [b for _, blocks, _ in rows for b in [*blocks, *[0] * (width - len(blocks))]]
    return (
        Array.of("int64", (len(starts),), starts),
        Array.of("int64", (len(rows),), [keys for keys, _, _ in rows]),
        Array.of("int64", (len(rows), width), tables),
    )


def _drawn(
    seed: float,
    rows: list[list[Any]],
    shape: tuple[int, int, int, int],
    *,
    heads: int,
    dtype: str = "float32",
    height: float = 1,
) -> Step:
    """A step with random numbers in all slots that were written, and NaN in the others."""
    rng = random.Random(seed)
    size, row = shape[1], shape[2] * shape[3]
    written = {blocks[p // size] * size + p % size for keys, blocks, _ in rows for p in range(keys)}
    queries = sum(count for _, _, count in rows)

    def pool() -> Array:
        slots = range(shape[0] * size)
        numbers = (_some(rng, row) if slot in written else [NAN] * row for slot in slots)
        return Array.of(dtype, shape, [x for slot in numbers for x in slot])

    q = [height * x for x in _some(rng, queries * heads * shape[3])]
    arrays = Array.of(dtype, (queries, heads, shape[3]), q), pool(), pool()
    return arrays, _meta(rows)


def _some(rng: random.Random, count: int) -> list[float]:
    return [round(rng.uniform(-2, 2), 2) for _ in range(count)]


def _case(name: str, story: str, step: Step) -> Case:
    arrays, meta = step
    make = Operation(meta, "AttentionMeta", keep="meta")
    return Case(name, story, (make, Operation((*arrays, Kept("meta")))))


def _oracle(case: Case) -> list[Any]:
    call = call_of(case)
    return [Close(attention(call), *TOLERANCE[call.q.dtype])]


CHECK = Check(visible, hidden, _oracle, explain=explain, picture=picture, tensors=True)
