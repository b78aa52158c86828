"""03.2 and 03.3: what is told about a wrong answer, and the pool drawn before it.

Each wrong idea is tried out on the same pool: the one that gives the learner's answer is named.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipaged.course import plain
from minipaged.course.checks.base import Failure
from minipaged.course.checks.lesson_03_rows import (
    array_of,
    gather,
    ints,
    put,
    read_array,
    rows_of,
)
from minipaged.course.plain import Array
from minipaged.course.script import Case


def _shifted(pool: Array, slots: Array, new: Array, where: Callable[[int, int], int]) -> Array:
    """Every row written somewhere else: where(slot, block_size) is the slot."""
    size, total = pool.shape[1], pool.shape[0] * pool.shape[1]
    moved = [where(slot, size) % total for slot in ints(slots)]
    return put(pool, Array.of("int64", (len(moved),), moved), new)


def _whole_blocks(pool: Array, slots: Array, new: Array) -> Array:
    """Each row in all slots of the block that the slot, or slot % num_blocks, is taken for."""
    rows, size = rows_of(pool), pool.shape[1]
    for slot, row in zip(ints(slots), rows_of(new, 1), strict=True):
        rows[slot * size : (slot + 1) * size] = [row] * size
    return array_of(pool, pool.shape, rows[: pool.shape[0] * size])


# the pool that a wrong idea leaves behind, most telling first
WRITE_MISTAKES: tuple[tuple[Callable[[Array, Array, Array], Array], str], ...] = (
    (
        lambda pool, slots, new: pool,
        "The pool is as it was before. Write into the tensor that you were given: clone() makes a "
        "copy, and so does picking out blocks with a tensor of indices; what is assigned to such "
        "a copy never reaches the pool.",
    ),
    (
        _whole_blocks,
        "A slot was taken for a block, and the whole block was filled. A block has block_size "
        "slots: find out which block a slot is in, and which place in it.",
    ),
    (
        lambda pool, slots, new: put(
            pool, Array.of("int64", slots.shape, sorted(ints(slots))), new
        ),
        "The slots were used in ascending order. Row i of `new` belongs in slot slot_mapping[i], "
        "whatever the order of the slots.",
    ),
    (
        lambda pool, slots, new: put(
            pool, Array.of("int64", slots.shape, range(len(ints(slots)))), new
        ),
        "The rows went to the first slots of the pool. slot_mapping says where each belongs.",
    ),
    (
        lambda pool, slots, new: _shifted(pool, slots, new, lambda s, b: s // b * b),
        "The rows went to the first place of the right blocks. The place inside the block is "
        "missing.",
    ),
)
IN_PLACE = "write_kv changes the pool that it is given and returns nothing."
SLOT_IS_NO_BLOCK = (
    "An index is too large. A slot number counts through all blocks of the pool, and the pool's "
    "first dimension counts blocks only."
)
ELSEWHERE = "Slots that are not in slot_mapping have changed. Leave all others as they are."
ROWS = "Row i of `new` belongs in slot slot_mapping[i], all KV heads and numbers of it."


def explain_write(failure: Failure) -> str:
    """The wrong idea that leaves this pool behind, or the rule that was broken."""
    if failure.fault:
        return SLOT_IS_NO_BLOCK if failure.fault == "IndexError" else ""
    if failure.operation.how != "get":
        return IN_PLACE
    pool, before = _before_last_write(failure.case, failure.number)
    got, right = failure.got, failure.expected
    if type(got) is not Array or got.shape != right.shape or pool is None:
        return IN_PLACE
    for mistake, sentence in WRITE_MISTAKES:
        if plain.same(mistake(pool, *before), got):
            return sentence
    written = set(ints(before[0]))
    for slot, (is_row, was_row) in enumerate(zip(rows_of(got), rows_of(pool), strict=True)):
        if slot not in written and not plain.same(is_row, was_row):
            return ELSEWHERE
    return ROWS


def _before_last_write(case: Case, number: int) -> tuple[Any, tuple[Any, ...]]:
    """The pool as it should be before the last call in front of an operation; its arguments."""
    pool: Any = None
    before: Any = None
    args: tuple[Any, ...] = ()
    for operation in case.operations[:number]:
        if operation.how == "give":
            pool = operation.args[0]
        elif operation.how == "call":
            before, args = pool, operation.args[1:]
            pool = put(pool, *args)
    return before, args


def _blocks(pool: Array, table: list[int], num_tokens: int) -> Array:
    """The rows of whole blocks, the first num_tokens of them; what does not exist is left out."""
    size, rows = pool.shape[1], rows_of(pool)
    read = [row for block in table for row in rows[block * size : (block + 1) * size]]
    return read_array(pool, read[:num_tokens])


def _needed(pool: Array, table: Array, tokens: int) -> list[int]:
    """The entries of the table that the tokens reach."""
    return ints(table)[: -(-tokens // pool.shape[1])]


def _by_entry(pool: Array, table: Array, tokens: int) -> Array:
    """The entry taken for the block's first slot."""
    size, rows = pool.shape[1], rows_of(pool)
    slots = [ints(table)[p // size] + p % size for p in range(tokens)]
    return read_array(pool, [rows[slot % len(rows)] for slot in slots])


# what a wrong idea reads, most telling first
GATHER_MISTAKES: tuple[tuple[Callable[[Array, Array, int], Array], str], ...] = (
    (
        lambda pool, table, n: _blocks(pool, list(range(pool.shape[0])), n),
        "The table was not asked: these are the first slots of the pool, whoever they belong to.",
    ),
    (
        lambda pool, table, n: _blocks(pool, ints(table), n // pool.shape[1] * pool.shape[1]),
        "The tokens in the last, partly filled block are missing. A begun block counts as well.",
    ),
    (
        lambda pool, table, n: _blocks(pool, list(range(ints(table)[0], pool.shape[0])), n),
        "Only the first entry of the table was used, and read on from there. The next block can "
        "be anywhere.",
    ),
    (
        lambda pool, table, n: _blocks(pool, sorted(_needed(pool, table, n)), n),
        "The blocks were read in the order of their numbers. The order of the table is the order "
        "of the tokens.",
    ),
    (
        lambda pool, table, n: _blocks(pool, _needed(pool, table, n)[::-1], n),
        "The blocks were read from the last to the first. The table begins with the first tokens.",
    ),
    (
        _by_entry,
        "An entry of the table was taken for a slot. It is the number of a block: each of the "
        "blocks before it has block_size slots.",
    ),
    (
        lambda pool, table, n: _blocks(pool, _needed(pool, table, n), 10**9),
        "Whole blocks came back. The last block may be begun only: its further slots hold nothing "
        "that belongs to these tokens, and may hold NaN.",
    ),
    (
        lambda pool, table, n: _blocks(pool, ints(table), 10**9),
        "All blocks of the table came back. Only num_tokens tokens are asked for.",
    ),
)
PER_BLOCK = (
    "The tokens are still grouped by block. What is wanted is one row a token: "
    "[num_tokens, num_kv_heads, head_dim]."
)
SAME_DTYPE = "The numbers are right, their dtype is not: return the dtype of the pool."
UNTOUCHED = "gather_kv only reads: the pool must be as it was."
LEFT_OVER = (
    "An index is too large. Entries of the table behind the last token's block mean nothing: do "
    "not look them up."
)
ORDER = (
    "Token p is in the block that entry p // block_size of the table names, at place "
    "p % block_size; the result has one row a token, in order of position."
)


def explain_gather(failure: Failure) -> str:
    """The wrong idea that reads this, or the rule that was broken."""
    if failure.operation.how == "get":
        return UNTOUCHED
    if failure.operation.how != "call":
        return ""
    if failure.fault:
        return LEFT_OVER if failure.fault == "IndexError" else ""
    got = failure.got
    if type(got) is not Array:
        return ""
    pool = failure.case.operations[0].args[0]
    table, tokens = failure.operation.args[1:]
    for mistake, sentence in GATHER_MISTAKES:
        if plain.same(mistake(pool, table, tokens), got):
            return sentence
    if len(got.shape) == len(pool.shape):
        return PER_BLOCK
    right = gather(pool, table, tokens)
    is_same = list(got.numbers()) == list(right.numbers())
    return SAME_DTYPE if is_same and got.dtype != right.dtype else ORDER


def picture(case: Case, number: int) -> str:
    """The pool before an operation, as it should be: block by block, the first number of each
    slot."""
    pool: Any = None
    for operation in case.operations[:number]:
        if operation.how == "give":
            pool = operation.args[0]
        elif operation.how == "call" and type(operation.args[2]) is Array:
            pool = put(pool, *operation.args[1:])
    if type(pool) is not Array:
        return ""
    size, firsts = pool.shape[1], [row[0] for row in rows_of(pool)]
    lines = [f"pool: {pool.shape[0]} blocks of {size} slots (the first number of each slot)"]
    for block in range(pool.shape[0]):
        shown = "".join(f"{number:7g}" for number in firsts[block * size : (block + 1) * size])
        lines.append(f"block {block:2}: {shown}")
    return "\n".join(lines)
