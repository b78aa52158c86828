"""11.3: what is told about a wrong result, and where the first query's keys lie.

The wrong idea (lesson_11_ideas.py) that gives the learner's numbers is named.
"""

from __future__ import annotations

import math
from typing import Any

from minipaged.course import expect
from minipaged.course.checks.base import Close, Failure
from minipaged.course.checks.lesson_03_rows import ints
from minipaged.course.checks.lesson_04_plain import Call, attention, contexts
from minipaged.course.checks.lesson_11_ideas import MISTAKES, TILE, Idea
from minipaged.course.fixture_far import DECOY
from minipaged.course.plain import Array
from minipaged.course.script import Case

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


IN_32_BITS = (
    "The offset has wrapped around: block 131,072 times 16,384 numbers is 2 to the 31, and the "
    "table's entries are int32. Make the block's number an int64 before you multiply it."
)
TAIL = (
    "NaN came out, and what nobody wrote to holds NaN. A weight of 0 is not enough: 0 times NaN is "
    "NaN. Load keys and values with a mask: neither slots behind the context nor numbers behind "
    "HEAD_DIM are to be read. If they have one: does every address lead to the key's own slot?"
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
ADDRESS = (
    "A pointer is an address: `tl.load(contexts + token)` reads the number there; neither "
    "`contexts[token]` nor `contexts + token` is that number. If this is not it: "
)
INSIDE = (
    "Do the shapes fit? queries [ROWS, DIM], keys and values [TILE, DIM], scores and weights "
    "[ROWS, TILE], maximum and sum [ROWS]. `tl.dot` multiplies [a, b] by [b, c], both of one dtype."
)
RAISED = {
    "IndexError": BEHIND,
    **dict.fromkeys(("TypeError", "IncompatibleTypeErrorImpl"), ADDRESS + INSIDE),
    **dict.fromkeys(("ValueError", "AssertionError", "RuntimeError", "CompilationError"), INSIDE),
}  # a name that does not exist says enough itself
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
        return RAISED.get(failure.fault, "")
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
