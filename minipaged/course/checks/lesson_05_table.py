"""05.1 ForkingTable(block_size): scripts over a few tables and one pool.

The pool is the plain one of fixtures.py, which hands out the lowest free ids, so a script can be
followed on paper. The oracle runs it on a plain table.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from minipaged.course import plain
from minipaged.course.checks.base import Check, Raises
from minipaged.course.checks.lesson_05_ideas import explain, picture
from minipaged.course.checks.lesson_05_plain import PlainForking
from minipaged.course.plain import Kept
from minipaged.course.script import Case, Observation, Operation, run

Part = list[Operation]


def visible() -> list[Case]:
    """The cases in the notebook: each method alone, then together over a pool."""
    return [*_alone(), *_together(), *_released(), *_refused()]


def _alone() -> list[Case]:
    """fork and replace, which ask no pool, and what the table has from lesson 03."""
    return [
        _case(
            "a fork",
            "B is forked off A. Then A gets a block more, and B another one.",
            *(_table([0, 1]), _fork("a", "b"), _ids("b"), _ask("b", "slot", 5)),
            *(_append("a", 2), _ids("a", "b"), _append("b", 3), _ids("a", "b")),
        ),
        _case(
            "a fork of other blocks",
            "Blocks of 16. The fork has the same slots, and its own fork has them too.",
            *(_table([7, 91, 142], 16), _fork("a", "b"), _fork("b", "c")),
            *(_ask("c", "slot", 37), _ask("c", "num_slots", how="get"), _append("b", 5)),
            _ids("a", "b", "c"),
        ),
        _case(
            "replace",
            "Block 91 makes way for block 5, in A's table only; B was forked off before.",
            *(_table([7, 91, 142], 16), _fork("a", "b"), _ask("a", "replace", 1, 5)),
            *(_ids("a", "b"), _ask("a", "slot", 20), _ask("b", "slot", 20)),
        ),
        _case(
            "as in lesson 03",
            "B is forked off A; then it is asked, released and used once more, as any table is.",
            *(_table([9, 3, 0]), _fork("a", "b"), _ask("b", "slot_mapping", 0, 6)),
            *(_ask("b", "slot", 12), _ask("b", "slot", -1), _ask("b", how="len")),
            *(_ask("b", "release"), _ids("b"), _ask("b", "num_slots", how="get")),
            *(_append("b", 8), _ids("a", "b"), _ask("b", "slot", 3)),
        ),
    ]


def _together() -> list[Case]:
    """Tables that write into blocks of a pool; cases 10 and 12 of the field among them."""
    return [
        _case(
            "alone",
            "Nobody shares anything: a block is taken at positions 0 and 4, none is copied.",
            *(_pool(3), _table(), _write("a", 0), _ids("a")),
            *(*(_write("a", p) for p in (1, 3, 4)), _ids("a"), _refs(0, 1)),
        ),
        _case(
            "a shared partial tail",
            "Six tokens, then a fork. A writes position 6, then B does: one copy, three blocks.",
            *(
                _pool(5),
                _shared("a", "b", tokens=6),
                _refs(0, 1),
                _write("a", 6),
                _ids("a", "b"),
                _refs(1),
            ),
            *(_write("b", 6), _ids("a", "b"), _refs(0, 1, 2), _free_count()),
            *(_ask("a", "slot", 6), _ask("b", "slot", 6)),
        ),
        _case(
            "at a border",
            "Eight tokens fill two blocks. Each of the two takes a block of its own; no copy.",
            *(_pool(5), _shared("a", "b", tokens=8), _write("a", 8), _write("b", 8)),
            *(_ids("a", "b"), _refs(0, 1, 2, 3)),
        ),
        _case(
            "three tables",
            "Three tables share the tail. The one that writes last writes in place.",
            *(_pool(6), _shared("a", "b", "c", tokens=6)),
            *(part for name in "bca" for part in (_write(name, 6), _refs(1))),
            *(_ids("a", "b", "c"), _free_count()),
        ),
    ]


def _released() -> list[Case]:
    """Tables that share blocks of a pool, some of which are released meanwhile."""
    return [
        _case(
            "the parent is gone",
            "A is forked and finishes before anybody writes: B is the last holder.",
            *(_pool(4), _shared("a", "b", tokens=6), _finish("a"), _write("b", 6), _ids("b")),
            *(_refs(0, 1), _free_count()),
        ),
        _case(
            "not the first blocks",
            "Others hold blocks 0 and 1, so A's three tokens are in block 2. A fork; both write.",
            *(_pool(5), _ask("pool", "allocate", 2), _shared("a", "b", tokens=3, first=2)),
            *(_write("b", 3), _write("a", 3), _ids("a", "b"), _refs(0, 2, 3)),
        ),
        _case(
            "freed after a copy",
            "B writes and gets a block of its own. B finishes, then A: every block is free again.",
            *(_pool(4), _shared("a", "b", tokens=6), _write("b", 6), _finish("b")),
            *(_refs(0, 1, 2), _finish("a"), _refs(0, 1, 2), _free_count()),
        ),
        _case(
            "position 4 once more",
            "Five tokens, a fork, and B writes position 4 anew: its block is there, and shared.",
            *(_pool(5), _shared("a", "b", tokens=5), _write("b", 4), _ids("a", "b"), _refs(1, 2)),
            *(_write("b", 4), _write("a", 4), _free_count()),
        ),
        _case(
            "not the last block",
            "Six tokens, a fork, and B goes back to position 2, in its first block.",
            *(_pool(5), _shared("a", "b", tokens=6), _write("b", 2), _ids("a", "b"), _refs(0, 1)),
        ),
    ]


def _refused() -> list[Case]:
    """The pool has no block left."""
    return [
        _case(
            "no block for the copy",
            "A pool of two, both shared. B's write is refused and changes nothing; then A ends.",
            *(_pool(2), _shared("a", "b", tokens=6), _write("b", 6), _ids("b"), _refs(0, 1)),
            *(_finish("a"), _write("b", 6), _ids("b")),
        ),
        _case(
            "no block to grow",
            "A pool of two, and A needs a third block.",
            *(_pool(2), _shared("a", tokens=8), _write("a", 8), _ids("a"), _refs(0, 1)),
        ),
    ]


def hidden(seed: int) -> list[Case]:
    """12 random scripts: tables that fork, write, go back, and end; some run out of blocks."""
    rng = random.Random(f"05.1/{seed}")
    return [_random_case(rng, size) for size in (1, 2, 3, 4, 4, 5, 7, 8, 16, 2, 3, 4)]


def _random_case(rng: random.Random, size: int) -> Case:
    tokens = rng.randrange(1, 4 * size)
    blocks = -(-tokens // size)
    num_blocks = blocks + rng.randrange(2, 10)
    parts = [_pool(num_blocks), _shared("a", tokens=tokens, size=size)]
    lengths = {"a": tokens}
    for name in "bcde":
        parent = rng.choice(sorted(lengths))
        parts += [_fork(parent, name), _share(parent), _ids(name)]
        lengths[name] = lengths[parent]
        for _ in range(3):
            writer = rng.choice(sorted(lengths))
            back = rng.random() < 0.3
            position = rng.randrange(lengths[writer]) if back else lengths[writer]
            parts += [_write(writer, position), _ids(writer), _refs(*range(num_blocks))]
            # a write that is refused is tried again, at the same place
            lengths[writer] += not back and _is_accepted(parts)
        if len(lengths) > 2 and rng.random() < 0.5:
            gone = rng.choice(sorted(lengths))
            parts += [_finish(gone), _refs(*range(num_blocks))]
            del lengths[gone]
    last = rng.choice(sorted(lengths))
    parts += [_ask(last, "replace", 0, 500), _ids(*lengths), _ask(last, "slot", 0)]
    parts += [_ask(last, "slot_mapping", 0, lengths[last]), _ask(last, how="len")]
    return _case("hidden", "Other tables and another pool.", *parts)


def _is_accepted(parts: list[Part]) -> bool:
    """Whether the last write of these parts finds a block."""
    operations = [operation for part in parts for operation in part]
    last = max(k for k, one in enumerate(operations) if one.method == "write")
    return run(operations[: last + 1], PlainForking)[-1].fault is None


def _case(name: str, story: str, *parts: Part) -> Case:
    return Case(name, story, tuple(operation for part in parts for operation in part))


def _pool(num_blocks: int) -> Part:
    return [Operation((num_blocks,), "PlainPool", keep="pool")]


def _table(block_ids: Iterable[int] = (), size: int = 4) -> Part:
    """The table "a" with these blocks."""
    made = [Operation((size,), keep="a")]
    return [*made, *_append("a", *block_ids)] if block_ids else made


def _append(name: str, *block_ids: int) -> Part:
    return _ask(name, "append_blocks", list(block_ids))


def _shared(name: str, *others: str, tokens: int, size: int = 4, first: int = 0) -> Part:
    """A table with room for so many tokens, and forks of it that hold its blocks too.

    first: the lowest free block of the pool.
    """
    count = -(-tokens // size)
    block_ids = range(first, first + count)
    part = [*_table(block_ids, size), Operation((count,), "pool", "allocate")]
    return part + [o for other in others for o in (*_fork(name, other), *_share(name))]


def _fork(parent: str, child: str) -> Part:
    return [Operation((), parent, "fork", keep=child)]


def _share(parent: str) -> Part:
    """The caller of fork shares the parent's blocks."""
    look = Operation((), parent, "block_ids", keep="held", how="get")
    return [look, Operation((Kept("held"),), "pool", "share")]


def _write(name: str, position: int) -> Part:
    return [Operation((position, Kept("pool")), name, "write")]


def _finish(name: str) -> Part:
    """The request has ended: its table gives up its blocks and the pool gets them back."""
    release = Operation((), name, "release", keep="held")
    return [release, Operation((Kept("held"),), "pool", "free")]


def _ask(name: str, method: str = "", *args: Any, how: str = "call") -> Part:
    return [Operation(args, name, method, how=how)]


def _ids(*names: str) -> Part:
    return [Operation((), name, "block_ids", how="get") for name in names]


def _refs(*block_ids: int) -> Part:
    return [Operation((block_id,), "pool", "refcount") for block_id in block_ids]


def _free_count() -> Part:
    return [Operation((), "pool", "num_free", how="get")]


def _oracle(case: Case) -> list[Any]:
    seen = run(case.operations, PlainForking)
    return [_answer(one) for o, one in zip(case.operations, seen, strict=True) if not o.keep]


def _answer(one: Observation) -> Any:
    return Raises(one.fault.kinds[0]) if one.fault else plain.decode(one.value)


CHECK = Check(visible, hidden, _oracle, explain=explain, picture=picture)
