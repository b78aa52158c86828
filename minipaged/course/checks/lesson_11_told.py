"""11.3: what is told about a wrong result, and where the first query's keys lie.

Each wrong idea is lesson 04's plain attention with one thing done in another way: the one that
gives the learner's numbers is named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from minipaged.course import expect
from minipaged.course.checks.base import Close, Failure
from minipaged.course.checks.lesson_03_rows import ints
from minipaged.course.checks.lesson_04_plain import Blocks, Call, Ways, attention, contexts, mean
from minipaged.course.checks.lesson_04_plain import slots as slots_of
from minipaged.course.checks.lesson_04_told import running
from minipaged.course.fixture_far import DECOY
from minipaged.course.plain import Array
from minipaged.course.script import Case

TILE = 64
FAR = "far_meta"  # what the meta of a step over a far pool is kept as


def call_of(case: Case) -> Call:
    """The arguments of a case's call. Of a far pool only the block that is there, as block 0."""
    meta, asked = case.operations[-2:]
    if meta.keep != FAR:
        return Call(*asked.args[:3], *meta.args)
    pools: list[Array] = []
    for operation in case.operations[:2]:
        values, dim, size, _, _ = operation.args
        row = [value for value in values for _ in range(dim)]
        pools.append(Array.of("float32", (1, size, len(values), dim), row * size))
    starts, seq_lens, _ = meta.args
    table = Array.of("int64", (1, 1), [0])
    return Call(asked.args[0], pools[0], pools[1], starts, seq_lens, table)


def right(call: Call) -> Array:
    """What every query head reads."""
    return attention(call)


def tiles(blocks: Blocks) -> Blocks:
    """The same keys, a list a tile."""
    keys = [one for block in blocks for one in block]
    return [keys[start : start + TILE] for start in range(0, len(keys), TILE)]


def _padded(blocks: Blocks) -> list[float]:
    """As if the places of the last tile that have no key held one with score 0 and value 0."""
    found = tiles(blocks)
    nothing = (0.0, [0.0] * len(found[0][0][1]))
    return mean([*found, [nothing] * (TILE - len(found[-1]))])


def _as_they_come(old: Callable[[float, float], tuple[float, float]]) -> Ways:
    return Ways(mean=lambda blocks: running(tiles(blocks), old))


def _not_divided(blocks: Blocks) -> list[float]:
    top = max(score for block in blocks for score, _ in block)
    total = sum(math.exp(score - top) for block in blocks for score, _ in block)
    return [number * total for number in mean(blocks)]


def _whole(table: Sequence[int], size: int, context: int) -> list[list[int]]:
    return slots_of(table, size, -(-context // size) * size)


Idea = Callable[[Call], Array]


def _by(ways: Ways) -> Idea:
    return lambda call: attention(call, ways)


def _first_query(call: Call) -> Array:
    row = call.q.shape[1] * call.q.shape[2]
    numbers = list(call.q.numbers())[:row] * call.q.shape[0]
    return attention(call._replace(q=Array.of(call.q.dtype, call.q.shape, numbers)))


def _first_table(call: Call) -> Array:
    rows, width = call.tables.shape
    return attention(call._replace(tables=Array.of("int64", (rows, width), _row(call) * rows)))


def _row(call: Call) -> list[int]:
    return ints(call.tables)[: call.tables.shape[1]]


# one way a wrong idea, most telling first
MISTAKES: tuple[tuple[Idea, str], ...] = (
    (
        _by(Ways(slots=lambda table, size, n: slots_of(range(len(table)), size, n))),
        "The table was not asked: these are the first blocks of the pool, whoever they belong to.",
    ),
    (
        _by(Ways(kv_head=lambda h, heads, kv: h % kv)),
        "The query heads take the KV heads in turn. Those of KV head g are neighbours: g * group "
        "and the group - 1 behind it.",
    ),
    (
        _by(Ways(kv_head=lambda h, heads, kv: 0)),
        "All query heads read KV head 0. The second program_id says which one is meant.",
    ),
    (
        _by(Ways(scale=lambda dim: 1.0)),
        "The scores are not scaled: multiply them by `scale`.",
    ),
    (
        _by(Ways(mean=_padded)),
        "A tile has places without a key. Their keys were loaded as 0, so their scores are 0, and "
        "e to the 0 is 1: they count in the sum. Give them the score minus infinity.",
    ),
    (
        _by(Ways(mean=_not_divided)),
        "The values are weighted, but never divided by the sum of the exponentials.",
    ),
    (
        _by(_as_they_come(lambda top, new: (1.0, 1.0))),
        "The maximum has risen from one tile to the next, and sum and mixture still count with the "
        "old one. Multiply both by e to the (old maximum - new one).",
    ),
    (
        _by(_as_they_come(lambda top, new: (math.exp(top - new), 1.0))),
        "When the maximum rises, the sum is scaled but the mixture of the values is not.",
    ),
    (
        _by(_as_they_come(lambda top, new: (1.0, math.exp(top - new)))),
        "When the maximum rises, the mixture of the values is scaled but the sum is not.",
    ),
    (
        _by(Ways(mean=lambda blocks: mean(tiles(blocks)[:1]))),
        "Only the first tile counts: the loop has to go on in steps of TILE up to the context.",
    ),
    (
        _by(Ways(mean=lambda blocks: mean(tiles(blocks)[-1:]))),
        "Only the last tile counts in the result. What the tiles before it gave is lost.",
    ),
    (
        _by(Ways(context=lambda keys, queries, i: keys)),
        "A query has read keys behind its own position: take `contexts`, token by token.",
    ),
    (
        _first_query,
        "Every token was given the query of token 0: the first program_id says which token it is.",
    ),
    (
        _first_table,
        "Every token was given the first row of the block tables. Its own is `seqs[token]`.",
    ),
    (
        _by(Ways(slots=_whole)),
        "Slots behind the last key were read as well: compare the keys with the context.",
    ),
)
IN_32_BITS = (
    "The offset has wrapped around: block 131,072 times 16,384 numbers is 2 to the 31, and the "
    "table's entries are int32. Make the block's number an int64 before you multiply it."
)
TAIL = (
    "NaN came out, and what nobody wrote to holds NaN. A weight of 0 is not enough: 0 times NaN is "
    "NaN. Load keys and values with a mask: neither slots behind the context nor numbers behind "
    "HEAD_DIM are to be read."
)
NO_KEYS = (
    "Without keys no tile is read, the sum stays 0, and 0 / 0 is NaN, as is minus infinity less "
    "minus infinity: divide by 1 in place of 0, and store the zeros."
)
OVERFLOW = (
    "NaN or inf came out: e to the 89 is more than a float32 holds. Subtract the running maximum "
    "before the exponential."
)
UNWRITTEN = "Some numbers of out were never written: they are NaN, as they were before the launch."
BEHIND = (
    "The rows behind the group's heads and the numbers behind HEAD_DIM belong to others. Store "
    "with the mask that the queries were loaded with."
)
INSIDE = (
    "Do the shapes fit? queries [ROWS, DIM], keys and values [TILE, DIM], scores and weights "
    "[ROWS, TILE], maximum and sum [ROWS]. `tl.dot` multiplies [a, b] by [b, c], both of one dtype."
)
SHAPE = "paged_decode returns what q looks like: [tokens, heads, head_dim], with the dtype of q."
RULE = (
    "Each query head reads the keys of its KV head at the positions 0 … context - 1, found through "
    "the table, and the result is the mean of their values with softmax's weights."
)


def explain(failure: Failure) -> str:
    """The wrong idea that gives these numbers, or the rule that was broken."""
    if failure.operation.keep:
        return ""
    call, got = call_of(failure.case), failure.got
    if failure.fault:
        return BEHIND if failure.fault == "IndexError" else INSIDE
    if type(got) is not Array or (got.dtype, got.shape) != (call.q.dtype, call.q.shape):
        return SHAPE
    numbers = list(got.numbers())
    if failure.case.operations[-2].keep == FAR and DECOY in numbers:
        return IN_32_BITS
    if not all(map(math.isfinite, numbers)):
        return _not_finite(call, numbers)
    clean = call._replace(k_pool=_without_nan(call.k_pool), v_pool=_without_nan(call.v_pool))
    return next((said for idea, said in MISTAKES if _gives(clean, idea, got)), RULE)


def _without_nan(pool: Array) -> Array:
    """The pool with 0 in the slots that nobody wrote to."""
    return Array.of(pool.dtype, pool.shape, [x if x == x else 0.0 for x in pool.numbers()])


def _not_finite(call: Call, numbers: list[float]) -> str:
    """Why there is a NaN or an inf: rows without keys, what nobody wrote, or high scores."""
    row = call.q.shape[1] * call.q.shape[2]
    reads = [context for _, context in contexts(call)]
    spoilt = [i for i in range(len(reads)) if not all(map(math.isfinite, numbers[i * row :][:row]))]
    if all(reads[i] <= 0 for i in spoilt):
        return NO_KEYS
    if any(x != x for x in call.v_pool.numbers()):
        return TAIL
    return OVERFLOW if any(abs(x) > 80 for x in call.k_pool.numbers()) else UNWRITTEN


def _gives(call: Call, idea: Idea, got: Array) -> bool:
    try:
        return expect.matches(Close(idea(call), 1e-4, 1e-5), got)
    except (ValueError, IndexError, OverflowError, ZeroDivisionError):
        return False


def picture(case: Case, number: int) -> str:
    """Where the keys of the first token lie, tile by tile."""
    if number != len(case.operations) - 1:
        return ""
    if case.operations[-2].keep == FAR:
        return f"table {ints(case.operations[-2].args[2])}, context {_keys(case)[0]}"
    call = call_of(case)
    row, context = next(contexts(call), (0, 0))
    width, size = call.tables.shape[1], call.k_pool.shape[1]
    table: list[Any] = ints(call.tables)[row * width : (row + 1) * width]
    lines = [f"token 0 reads {context} keys, table {table}, blocks of {size}"]
    for start in range(0, max(context, 0), TILE):
        end = min(start + TILE, context)
        blocks = table[start // size : -(-end // size)]
        lines.append(f"  tile of keys {start} to {end - 1}: blocks {blocks}")
    return "\n".join(lines)


def _keys(case: Case) -> list[int]:
    return ints(case.operations[-2].args[1])
