"""03.2 write_kv(pool, slot_mapping, new) and 03.3 gather_kv(pool, block_table, num_tokens).

Both only copy, so what is right is right to the last bit. A script lends the learner's code a pool
under a name and looks at it again afterwards.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from minipaged.course.checks.base import Check
from minipaged.course.checks.lesson_03_rows import gather, put
from minipaged.course.checks.lesson_03_told import explain_gather, explain_write, picture
from minipaged.course.plain import Array, Kept
from minipaged.course.script import Case, Operation

NAN = float("nan")


def _numbered(dtype: str, shape: tuple[int, ...]) -> Array:
    """Every slot holds its own number; in further places of its row a fraction is added."""
    slots, width = shape[0] * shape[1], shape[2] * shape[3]
    step = 1000 if dtype == "int64" else 1
    fractions = [k if step > 1 else k / 8 for k in range(width)]
    return Array.of(
        dtype, shape, [step * slot + part for slot in range(slots) for part in fractions]
    )


def _write(slots: Sequence[int], rows: Iterable[float], pool: Array) -> Operation:
    """A call of write_kv on the pool kept as "pool"."""
    shape = (len(slots), *pool.shape[2:])
    numbers = [int(n) for n in rows] if pool.dtype == "int64" else rows
    new = Array.of(pool.dtype, shape, numbers)
    return Operation((Kept("pool"), Array.of("int64", (len(slots),), slots), new))


def _written(name: str, story: str, pool: Array, write: tuple[list[int], list[float]]) -> Case:
    give, look = Operation((pool,), keep="pool", how="give"), Operation((), "pool", how="get")
    return Case(name, story, (give, _write(*write, pool), look))


def _gathered(
    name: str, story: str, pool: Array, *reads: tuple[list[int], int], dtype: str = "int64"
) -> Case:
    tables = [(Array.of(dtype, (len(table),), table), tokens) for table, tokens in reads]
    calls = [Operation((Kept("pool"), table, tokens)) for table, tokens in tables]
    give, look = Operation((pool,), keep="pool", how="give"), Operation((), "pool", how="get")
    return Case(name, story, (give, *calls, look))


EMPTY = Array.of("float32", (4, 2, 1, 1), [NAN] * 8)
WRITTEN = (
    _written("one token", "An empty pool (NaN) of 4 blocks of 2 slots.", EMPTY, ([5], [1.5])),
    _written(
        "one step",
        "Two tokens of one request and one of another, in slots far apart.",
        EMPTY,
        ([2, 3, 7], [1, 2, 3]),
    ),
    _written(
        "any order",
        "Slots that go down: row i of `new` belongs in slot slot_mapping[i].",
        EMPTY,
        ([7, 1, 4], [1, 2, 3]),
    ),
    _written(
        "what is there stays",
        "Every slot of the pool is in use; one token is written.",
        _numbered("float32", (4, 2, 1, 1)),
        ([5], [-1]),
    ),
    _written(
        "rows, not numbers",
        "Two KV heads of three numbers each: a token has a whole row.",
        _numbered("float32", (2, 2, 2, 3)),
        ([2, 1], [*range(-1, -13, -1)]),
    ),
    _written(
        "other numbers", "A pool of float64.", _numbered("float64", (2, 2, 1, 2)), ([3], [7, 8])
    ),
    _written("nothing to write", "A step without tokens.", EMPTY, ([], [])),
    Case(
        "two steps",
        "What the first step wrote is still there after the second.",
        (
            Operation((EMPTY,), keep="pool", how="give"),
            _write([4, 5], [1, 2], EMPTY),
            _write([6, 0], [3, 4], EMPTY),
            Operation((), "pool", how="get"),
        ),
    ),
)


def visible_write() -> list[Case]:
    """The cases of 03.2 in the notebook."""
    return list(WRITTEN)


def hidden_write(seed: int) -> list[Case]:
    """10 pools of other sizes, each written to twice."""
    rng = random.Random(f"03.2/{seed}")
    return [_hidden_write(rng, k) for k in range(10)]


def _hidden_write(rng: random.Random, k: int) -> Case:
    shape = (rng.randrange(2, 7), rng.choice((1, 2, 3, 4, 8)), rng.choice((1, 2)), 1 + k % 3)
    pool = _numbered(_dtype(k), shape)
    operations = [Operation((pool,), keep="pool", how="give")]
    slots, width = shape[0] * shape[1], shape[2] * shape[3]
    for _ in range(2):
        chosen = rng.sample(range(slots), rng.randrange(1, slots + 1))
        rows = [float(-rng.randrange(1, 10_000)) for _ in range(len(chosen) * width)]
        operations += [_write(chosen, rows, pool), Operation((), "pool", how="get")]
    return Case("hidden", "A pool of another size.", tuple(operations))


BY_BLOCK = Array.of("float32", (4, 4, 1, 1), [slot // 4 for slot in range(16)])
BY_SLOT = _numbered("float32", (4, 4, 1, 1))
GATHERED = (
    _gathered(
        "by block number",
        "Every slot of the pool holds the number of its physical block. The table says "
        "[3, 1]: the mean of what is read is 2.",
        BY_BLOCK,
        ([3, 1], 8),
    ),
    _gathered(
        "in order", "Every slot holds its own number.", BY_SLOT, ([1, 2], 8), ([2, 0, 1], 12)
    ),
    _gathered(
        "a begun block",
        "6 tokens in two blocks of 4: the last two slots were never written (NaN).",
        Array.of("float32", (4, 4, 1, 1), [*range(6), NAN, NAN, *range(8, 16)]),
        ([3, 1], 6),
    ),
    _gathered("one token", "A single token, and more than one block.", BY_SLOT, ([2, 3], 1)),
    _gathered(
        "a longer table",
        "Entries behind the last token's block are left over from elsewhere and mean nothing.",
        BY_SLOT,
        ([2, 1, 999, -1], 7),
    ),
    _gathered(
        "rows, not numbers",
        "Two KV heads of three numbers each.",
        _numbered("float32", (3, 2, 2, 3)),
        ([2, 0], 3),
    ),
    _gathered(
        "other numbers",
        "A pool of float64, and a table of 32-bit numbers.",
        _numbered("float64", (3, 2, 1, 2)),
        ([1, 0], 4),
        dtype="int32",
    ),
    _gathered("nothing yet", "No token: a tensor without rows.", BY_SLOT, ([2, 3], 0)),
)


def visible_gather() -> list[Case]:
    """The cases of 03.3 in the notebook."""
    return list(GATHERED)


def hidden_gather(seed: int) -> list[Case]:
    """10 pools of other sizes, each read twice."""
    rng = random.Random(f"03.3/{seed}")
    return [_hidden_gather(rng, k) for k in range(10)]


def _hidden_gather(rng: random.Random, k: int) -> Case:
    blocks, size = rng.randrange(3, 8), rng.choice((1, 2, 3, 4, 8))
    pool = _numbered(_dtype(k), (blocks, size, 1 + k % 2, 1 + k % 3))
    reads = []
    for _ in range(2):
        table = rng.sample(range(blocks), rng.randrange(2, blocks + 1))
        tokens = rng.randrange(1, len(table) * size + 1)
        reads.append((table + [10_000] * (k % 3), tokens))
    dtype = ("int64", "int32")[k % 2]
    return _gathered("hidden", "A pool of another size.", pool, *reads, dtype=dtype)


def _dtype(k: int) -> str:
    return ("float32", "float64", "int64", "float32", "float32")[k % 5]


def _oracle(case: Case, call: Callable[..., tuple[Any, Array]]) -> list[Any]:
    """Play the script; `call` gives a call's result and the pool after it."""
    pool: Any = None
    expected = []
    for operation in case.operations:
        if operation.how == "give":
            (pool,) = operation.args
        elif operation.how == "get":
            expected.append(pool)
        else:
            result, pool = call(pool, *operation.args[1:])
            expected.append(result)
    return expected


def _write_oracle(case: Case) -> list[Any]:
    return _oracle(case, lambda pool, slots, new: (None, put(pool, slots, new)))


def _gather_oracle(case: Case) -> list[Any]:
    return _oracle(case, lambda pool, table, tokens: (gather(pool, table, tokens), pool))


WRITE = Check(
    visible_write,
    hidden_write,
    _write_oracle,
    explain=explain_write,
    picture=picture,
    tensors=True,
)
GATHER = Check(
    visible_gather,
    hidden_gather,
    _gather_oracle,
    explain=explain_gather,
    picture=picture,
    tensors=True,
)
