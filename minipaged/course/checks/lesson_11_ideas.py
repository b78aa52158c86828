"""11.3: wrong ideas, each lesson 04's plain attention with one thing done in another way."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from minipaged.course.checks.lesson_03_rows import ints
from minipaged.course.checks.lesson_04_plain import Blocks, Call, Ways, attention, contexts, mean
from minipaged.course.checks.lesson_04_plain import slots as slots_of
from minipaged.course.checks.lesson_04_told import running
from minipaged.course.plain import Array

TILE = 64


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


def _one_more(table: Sequence[int], size: int, context: int) -> list[list[int]]:
    """The launcher's tables go on with block 0."""
    return slots_of([*table, 0], size, context + 1)


def _whole(table: Sequence[int], size: int, context: int) -> list[list[int]]:
    return slots_of(table, size, -(-context // size) * size)


def _position_for_slot(table: Sequence[int], size: int, context: int) -> list[list[int]]:
    return [[table[at // size] * size + at] for at in range(context)]


def _entry_for_each_key(table: Sequence[int], size: int, context: int) -> list[list[int]]:
    entries = [*table, *[0] * context]
    return [[entries[at] * size + at % size] for at in range(context)]


def _step_of_one(blocks: Blocks) -> list[float]:
    keys = [one for block in blocks for one in block]
    return mean([keys[start : start + TILE] for start in range(len(keys))])


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


def _table_of_its_number(call: Call) -> Array:
    """Token t reads row t; behind the last row the launcher's tables are 0."""
    reads = [context for _, context in contexts(call)]
    count, width = len(reads), call.tables.shape[1]
    rows = (ints(call.tables) + [0] * width * count)[: count * width]
    return attention(
        call._replace(
            starts=Array.of("int64", (count + 1,), list(range(count + 1))),
            seq_lens=Array.of("int64", (count,), reads),
            tables=Array.of("int64", (count, width), rows),
        )
    )


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
        "Every token was given the first row of the block tables. Its own is what `seqs` says.",
    ),
    (
        _table_of_its_number,
        "A token was given the row of the tables that has the token's number. A prompt has many "
        "tokens and one row: it is what `seqs` says.",
    ),
    (
        _by(Ways(slots=_position_for_slot)),
        "The whole position was added to the block's first slot. Positions go on from block to "
        "block, slots begin again at 0.",
    ),
    (
        _by(Ways(slots=_entry_for_each_key)),
        "Every key took an entry of the table for itself. An entry is a whole block: which one has "
        "this key?",
    ),
    (
        _by(Ways(mean=_step_of_one)),
        "Some keys were read more than once: the loop has to go on in steps of TILE.",
    ),
    (
        _by(Ways(slots=_one_more)),
        "One key too many was read: the positions of a context are 0 to context - 1.",
    ),
    (
        _by(Ways(slots=_whole)),
        "Slots behind the last key were read as well: compare the keys with the context.",
    ),
)
