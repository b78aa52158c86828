"""05.1 ForkingTable: what is told about a wrong answer, and tables and counts drawn before it.

Each wrong idea is the plain table with one thing done wrongly: the one that gives the learner's
answer is the one that is named.
"""

from __future__ import annotations

from typing import Any

from minipaged.course import plain
from minipaged.course.checks.base import Failure, Raises
from minipaged.course.checks.lesson_05_plain import PlainForking
from minipaged.course.fixture_pools import PlainPool
from minipaged.course.script import Case, Operation, run

Copy = tuple[int, int] | None


def _but(**changed: Any) -> Any:
    """The plain table with one thing done in another way."""
    return type("Wrong", (PlainForking,), changed)


def _sharing(table: PlainForking) -> PlainForking:
    twin = type(table)(table.block_size)
    twin.block_ids = table.block_ids
    return twin


def _in_place(table: PlainForking, entry: int, block_id: int) -> int:
    """replace without a new list: so that tables which share one both change."""
    old, table.block_ids[entry] = table.block_ids[entry], block_id
    return old


def _returns_new(table: PlainForking, entry: int, block_id: int) -> int:
    PlainForking.replace(table, entry, block_id)
    return block_id


def _inserts(table: PlainForking, entry: int, block_id: int) -> int:
    table.block_ids.insert(entry, block_id)
    return table.block_ids[entry + 1]


def _is_new(table: PlainForking, position: int) -> bool:
    return position == table.num_slots


def _never_copies(table: PlainForking, position: int, pool: PlainPool) -> Copy:
    return PlainForking.write(table, position, pool) if _is_new(table, position) else None


def _copy(table: PlainForking, entry: int, pool: PlainPool) -> tuple[int, int]:
    (new,) = pool.allocate(1)
    old = table.replace(entry, new)
    pool.free([old])
    return old, new


def _always_copies(table: PlainForking, position: int, pool: PlainPool) -> Copy:
    if _is_new(table, position):
        return PlainForking.write(table, position, pool)
    return _copy(table, position // table.block_size, pool)


def _copies_at_borders(table: PlainForking, position: int, pool: PlainPool) -> Copy:
    last = len(table.block_ids) - 1
    if _is_new(table, position) and last >= 0 and pool.refcount(table.block_ids[last]) > 1:
        moved = _copy(table, last, pool)
        table.append_blocks(pool.allocate(1))
        return moved
    return PlainForking.write(table, position, pool)


def _last_entry(table: PlainForking, position: int, pool: PlainPool) -> Copy:
    if _is_new(table, position):
        return PlainForking.write(table, position, pool)
    last = len(table.block_ids) - 1
    return _copy(table, last, pool) if pool.refcount(table.block_ids[last]) > 1 else None


def _by_remainder(table: PlainForking, position: int, pool: PlainPool) -> Copy:
    if position % table.block_size == 0:
        table.append_blocks(pool.allocate(1))
        return None
    return PlainForking.write(table, position, pool)


def _keeps_old(table: PlainForking, position: int, pool: PlainPool) -> Copy:
    """The old block is not given back."""
    moved = PlainForking.write(table, position, pool)
    if moved:
        pool.share([moved[0]])
    return moved


def _keeps_entry(table: PlainForking, position: int, pool: PlainPool) -> Copy:
    moved = PlainForking.write(table, position, pool)
    if moved:
        table.replace(table.block_ids.index(moved[1]), moved[0])
    return moved


def _frees_first(table: PlainForking, position: int, pool: PlainPool) -> Copy:
    """The hold on the old block is given back before there is a new one."""
    if _is_new(table, position):
        return PlainForking.write(table, position, pool)
    entry = position // table.block_size
    old = table.block_ids[entry]
    if pool.refcount(old) == 1:
        return None
    pool.free([old])
    (new,) = pool.allocate(1)
    return table.replace(entry, new), new


def _turned_round(table: PlainForking, position: int, pool: PlainPool) -> Copy:
    moved = PlainForking.write(table, position, pool)
    return moved and moved[::-1]


def _only_new(table: PlainForking, position: int, pool: PlainPool) -> Any:
    moved = PlainForking.write(table, position, pool)
    return moved and moved[1]


def _asks_logical(table: PlainForking, position: int, pool: PlainPool) -> Copy:
    """The pool is asked about the entry's place in the table, not about the block there."""
    entry = position // table.block_size
    if _is_new(table, position) or pool.refcount(entry) > 1:
        return PlainForking.write(table, position, pool)
    return None


def _nests(table: PlainForking, position: int, pool: PlainPool) -> Any:
    if _is_new(table, position):
        table.block_ids.append(pool.allocate(1))  # type: ignore[arg-type]
        return None
    return PlainForking.write(table, position, pool)


def _list_is_new(table: PlainForking, position: int, pool: PlainPool) -> Any:
    moved = PlainForking.write(table, position, pool)
    return moved and (moved[0], [moved[1]])


SHARED_LIST = (
    "The two tables share one list: what one of them appends or replaces stands in the other one "
    "too. A fork needs a list of its own with the same entries."
)

A_LIST = (
    "pool.allocate returns a list, also when it is asked for one block. What belongs here is the "
    "id in that list."
)

# one table a wrong idea, most telling first
MISTAKES: tuple[tuple[Any, str], ...] = (
    (_but(fork=_sharing, replace=_in_place), SHARED_LIST),
    (_but(fork=lambda t: t, replace=_in_place), SHARED_LIST),
    (
        _but(fork=lambda t: type(t)(t.block_size)),
        "The fork is empty. It begins with all blocks of the table that it is forked off.",
    ),
    (_but(replace=_returns_new), "replace returns the block that stood there before."),
    (
        _but(replace=_inserts),
        "The new block was put in beside the old one. It takes the old one's place: the number "
        "of entries stays the same.",
    ),
    (
        _but(write=_by_remainder),
        "A position that is the first of its block does not always need a new one: the table may "
        "have that block already. Compare with how many blocks it has.",
    ),
    (
        _but(write=_asks_logical),
        "The pool was asked about the number of the logical block. It counts the holders of "
        "physical ones: block_ids leads from the one to the other.",
    ),
    (
        _but(write=_never_copies),
        "The block has another holder, and it was not copied, or write did not say so: it returns "
        "(old, new). Without a copy both write their own token into the same slot, and one of "
        "them reads the other's.",
    ),
    (
        _but(write=_always_copies),
        "The last holder writes in place. When a block has one holder only, nobody is left who "
        "needs its old contents, and a copy would cost a block for nothing.",
    ),
    (
        _but(write=_copies_at_borders),
        "A full block was copied. Nothing more is written into it: the token goes into a new "
        "block, and the full one stays shared.",
    ),
    (
        _but(write=_last_entry),
        "The table's last block was looked at, and the token goes into another one. Which entry "
        "it is follows from the position.",
    ),
    (
        _but(write=_keeps_old),
        "The table's hold on the old block was not given back. It has a block of its own now, "
        "so it is a holder less: pool.free.",
    ),
    (
        _but(write=_keeps_entry),
        "The table still leads to the old block. The new one has to take its place in the table, "
        "or the token goes where it went before.",
    ),
    (
        _but(write=_frees_first),
        "All or nothing: the old block was given back before it was certain that there is a new "
        "one. Allocate first, as that can fail; then replace and free.",
    ),
    (
        _but(write=_turned_round),
        "The pair is the wrong way round: first the block to copy from, then the one to copy to.",
    ),
    (_but(write=_only_new), "write returns the pair (old, new): a copy has a source and a target."),
    (_but(write=_nests), A_LIST),
    (_but(write=_list_is_new), A_LIST),
)

RULES = {
    "fork": "fork takes nothing and returns another table with a list of its own.",
    "replace": "replace(entry, block_id) writes the entry and returns the block that stood there.",
    "write": (
        "write takes a block at the first position of a logical block that the table does not "
        "have; copies, and returns (old, new), where others hold the block as well; and returns "
        "None otherwise."
    ),
    "block_ids": "A table changes by what is asked of it, and by nothing else.",
    "refcount": "A block's refcount is the number of tables that hold it.",
    "num_free": "A block is free when no table holds it.",
    "free": "A table that has ended returns every block that it holds, each once.",
}
NO_TABLE = (
    "fork returns the new table itself, which can be asked for its block_ids. Is its `return` "
    "missing?"
)
WANTS_NO_BLOCK = "The pool ran out of blocks where none was needed: how many were taken before?"
REFUSED = (
    "The pool has no block for this, so write raises its MemoryError. It need not catch it: what "
    "matters is that nothing has changed before."
)


def explain(failure: Failure) -> str:
    """The wrong idea that gives the same answer, else the rule for what was asked."""
    operation = failure.operation
    if operation.keep and not operation.target:
        return "A table is made with the block size alone, and it is empty at first."
    if failure.fault == "AttributeError" and operation.method == "block_ids":
        return NO_TABLE
    if failure.fault == "MemoryError":
        return WANTS_NO_BLOCK
    if type(failure.expected) is Raises and failure.expected.kind == "MemoryError":
        return REFUSED
    for table, sentence in () if failure.fault else MISTAKES:
        if _gives(table, failure):
            return sentence
    return RULES.get(operation.method, "")


def _gives(table: Any, failure: Failure) -> bool:
    """Whether a table answers as the learner's did: rightly up to the failure, then with this."""
    operations = failure.case.operations[: failure.number + 1]
    *before, last = run(operations, table)
    is_same = last.fault is None and plain.same(plain.decode(last.value), failure.got)
    return is_same and all(
        (one.value, one.fault and one.fault.kinds)
        == (right.value, right.fault and right.fault.kinds)
        for one, right in zip(before, run(operations[:-1], PlainForking), strict=True)
    )


def picture(case: Case, number: int) -> str:
    """Tables and refcounts before an operation, as they should be."""
    before = case.operations[:number]
    tables = [o.keep for o in before if o.keep and o.method in ("", "fork") and o.keep != "pool"]
    pools = [o.args[0] for o in before if o.keep == "pool"]
    asked = [Operation((), name, "block_ids", how="get") for name in tables]
    asked += [Operation((b,), "pool", "refcount") for n in pools for b in range(n)]
    seen = run((*before, *asked), PlainForking)[number:]
    values = [plain.decode(one.value) for one in seen]
    lines = [f"{name}: {ids}" for name, ids in zip(tables, values, strict=False)]
    counts = values[len(tables) :]
    if counts:
        lines.append("block    " + "".join(f"{b:3}" for b in range(len(counts))))
        lines.append("refcount " + "".join(f"{count:3}" for count in counts))
    return "\n".join(lines)
