"""03.1 BlockTable: what is told about a wrong answer, and the tables drawn before it.

Each wrong idea is the plain table with one thing done wrongly: the one that gives the learner's
answer is the one that is named.
"""

from __future__ import annotations

from typing import Any

from minipaged.course import plain
from minipaged.course.checks.base import Failure
from minipaged.course.checks.lesson_03_plain import PlainTable
from minipaged.course.script import Case, run


def _but(**changed: Any) -> Any:
    """The plain table with one thing done in another way."""
    return type("Wrong", (PlainTable,), changed)


def _at(table: PlainTable, logical: int, offset: int) -> int:
    return table.block_ids[logical] * table.block_size + offset


def _emptied(table: PlainTable) -> list[int]:
    ids = table.block_ids
    ids.clear()
    return ids


def _kept_list(table: PlainTable, ids: list[int]) -> None:
    table.block_ids = table.block_ids + ids if table.block_ids else ids


# one table a wrong idea, most telling first
MISTAKES: tuple[tuple[Any, str], ...] = (
    (
        _but(slot=lambda t, p: _at(t, p // t.block_size, p % t.block_size)),
        "A negative position counts from the end here, as list indices and % do in Python. There "
        "is no token before the first: refuse it.",
    ),
    (
        _but(slot=lambda t, p: t.block_ids and p),
        "The table was not asked: this is the slot that the token would have if block 0, 1, 2, … "
        "of the pool were its own. Only the offset comes from the position; the block that it is "
        "counted from is the one that the table names.",
    ),
    (
        _but(slot=lambda t, p: t.block_ids[p // t.block_size] + p % t.block_size),
        "The offset was added to the block's number. A block's number is not its first slot: each "
        "of the blocks before it has block_size slots.",
    ),
    (
        _but(slot=lambda t, p: _at(t, p // t.block_size, p)),
        "The whole position was added to the block's first slot. Inside its block a token is only "
        "as far as it is behind the start of its logical block.",
    ),
    (
        _but(slot=lambda t, p: _at(t, p % t.block_size, p // t.block_size)),
        "Quotient and remainder have changed places: the quotient says which entry of the table, "
        "the remainder which place in the block.",
    ),
    (
        _but(slot=lambda t, p: _at(t, (p - 1) // t.block_size, (p - 1) % t.block_size)),
        "Positions are counted from 0 here: the first token stands at position 0.",
    ),
    (
        _but(slot=lambda t, p: t.block_ids[p // 16] * 16 + p % 16),
        "Is 16 written into the code? The block size is what the table was made with.",
    ),
    (
        _but(slot_mapping=lambda t, a, b: [t.slot(p) for p in range(a, b + 1)]),
        "slot_mapping includes the slot of `end`. As in range(start, end), the last one is that "
        "of end - 1.",
    ),
    (
        _but(slot_mapping=lambda t, a, b: list(range(t.slot(a), t.slot(a) + b - a))),
        "slot_mapping counts on from the first slot. That holds inside one block only; the next "
        "block can be anywhere.",
    ),
    (
        _but(release=lambda t: list(t.block_ids)),
        "release returned the blocks but the table still has them. Whoever gets them next would "
        "share them with this table without knowing.",
    ),
    (
        _but(release=_emptied),
        "release emptied the very list that it returned. Hand over the old list and begin a new "
        "one.",
    ),
    (
        _but(release=lambda t: PlainTable.release(t)[::-1]),
        "release hands over the blocks in the order of the table, head first. The pool takes care "
        "of the order in which they are used again.",
    ),
    (_but(release=lambda t: t.block_ids.clear()), "release must return the blocks that it drops."),
    (
        _but(append_blocks=_kept_list),
        "The table keeps the very list that it was given, so it changes when its owner changes "
        "it. Copy the ids into a list of the table's own.",
    ),
    (
        _but(append_blocks=lambda t, ids: setattr(t, "block_ids", list(ids))),
        "append_blocks replaced the blocks that were there. The new ones come behind them.",
    ),
    (
        _but(append_blocks=lambda t, ids: t.block_ids.append(ids)),
        "append puts the list itself into the table, as one entry. What is wanted are its ids, "
        "one entry each.",
    ),
    (
        _but(num_slots=property(len)),
        "num_slots counts blocks. Each block has block_size slots.",
    ),
    (
        _but(__len__=lambda t: t.num_slots),
        "len(table) is the number of entries, that is of blocks, not of slots.",
    ),
)

SHARED = (
    "Two tables share one list. A list that stands in the class body, or as a default value, "
    "exists once for all objects: make it in __init__."
)
NO_ENTRY = (
    "The table was asked for an entry that it does not have. Which entry it is says the quotient "
    "of position and block size; the remainder says which place in the block. Have they changed "
    "places, or is the position itself taken for one of them?"
)
SLOTS = (
    "A token's slot lies in the block that the table names for its logical block, as many places "
    "behind that block's first slot as the token is behind the start of its logical block."
)
RULES = {
    "slot": SLOTS + " A position without a slot is an IndexError.",
    "slot_mapping": SLOTS + " slot_mapping lists the slots of start … end - 1; "
    "a position without a slot is an IndexError.",
    "append_blocks": "append_blocks puts the ids behind those that are there, and returns nothing.",
    "release": "release returns block_ids, head first, and the table is empty afterwards.",
    "block_ids": "block_ids lists all blocks that the table holds, in the order of the tokens.",
    "num_slots": "num_slots is an attribute (a property): blocks held times block size.",
}


def explain(failure: Failure) -> str:
    """The wrong idea that gives the same answer, else the rule for what was asked."""
    operation = failure.operation
    if not operation.target and operation.keep:
        return "A table is made with the block size alone, and it is empty at first."
    if failure.fault == "IndexError" and operation.method in ("slot", "slot_mapping"):
        return NO_ENTRY
    for table, sentence in () if failure.fault else MISTAKES:
        one = run(failure.case.operations[: failure.number + 1], table)[-1]
        if one.fault is None and plain.same(plain.decode(one.value), failure.got):
            return sentence
    if operation.target in ("first", "second") and type(failure.got) is list:
        return SHARED
    return RULES.get(operation.method, "")


def picture(case: Case, number: int) -> str:
    """The tables before an operation, as they should be: logical block above physical block."""
    tables: dict[str, PlainTable] = {}
    for operation in case.operations[:number]:
        if operation.keep and not operation.target and operation.how == "call":
            tables[operation.keep] = PlainTable(*operation.args)
        elif operation.method == "append_blocks":
            ids = _given(operation.args[0], case)
            tables[operation.target].append_blocks(ids)
        elif operation.method == "release":
            tables[operation.target].release()
    return "\n".join(line for name, table in tables.items() for line in _drawn(name, table))


def _given(ids: Any, case: Case) -> list[int]:
    """The ids that were passed: themselves, or a list kept before."""
    if type(ids) is not plain.Kept:
        return list(ids)
    return next(list(o.args[0]) for o in case.operations if o.keep == ids.name)


def _drawn(name: str, table: PlainTable) -> list[str]:
    if not table.block_ids:
        return [f"{name}: empty, block size {table.block_size}"]
    rows = (("logical block ", range(len(table))), ("physical block", table.block_ids))
    lines = [f"{label}" + "".join(f"{n:5}" for n in numbers) for label, numbers in rows]
    return [f"{name}: block size {table.block_size}", *(f"  {line}" for line in lines)]
