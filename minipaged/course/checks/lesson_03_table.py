"""03.1 BlockTable(block_size): scripts of calls, run on a plain table as well as the learner's."""

from __future__ import annotations

import random
from typing import Any

from minipaged.course import plain
from minipaged.course.checks.base import Check, Raises
from minipaged.course.checks.lesson_03_ideas import explain, picture
from minipaged.course.checks.lesson_03_plain import PlainTable
from minipaged.course.script import Case, Observation, Operation, run


def _case(name: str, story: str, *parts: list[Operation]) -> Case:
    return Case(name, story, tuple(operation for part in parts for operation in part))


def _table(name: str, block_size: int, block_ids: list[int] | None = None) -> list[Operation]:
    """Make a table and keep it under a name."""
    made = [Operation((block_size,), keep=name)]
    return made if block_ids is None else [*made, Operation((block_ids,), name, "append_blocks")]


def _ask(method: str, *args: Any) -> list[Operation]:
    return [Operation(args, "table", method)]


def _state() -> list[Operation]:
    """All that can be seen of a table."""
    return [
        Operation((), "table", "block_ids", how="get"),
        Operation((), "table", how="len"),
        Operation((), "table", "num_slots", how="get"),
    ]


def _aliases(block_size: int, first: list[int], second: list[int]) -> list[Operation]:
    """The caller goes on using the list that it passed, and the one that it was given."""
    return [
        Operation((first,), keep="ids", how="give"),
        *_table("table", block_size),
        *_ask("append_blocks", plain.Kept("ids")),
        Operation((99,), "ids", "append"),
        *_state(),
        Operation((), "table", "release", keep="released"),
        *_ask("append_blocks", second),
        Operation((), "released", how="get"),
        *_state(),
    ]


THREE = _table("table", 16, [7, 91, 142])
# name, story, and the parts of the script
VISIBLE: tuple[tuple[str, str, tuple[list[Operation], ...]], ...] = (
    (
        "token 37",
        "A table of three blocks of 16, and the token that the lesson looks for.",
        (THREE, _state(), _ask("slot", 37)),
    ),
    (
        "two tables",
        "Two requests: what one table gets is none of the other's business.",
        (
            *(_table("first", 4, [5]), _table("second", 4, [2, 7])),
            [Operation((), name, "block_ids", how="get") for name in ("first", "second")],
        ),
    ),
    (
        "borders of blocks",
        "The first and the last token of each of three blocks.",
        (THREE, *(_ask("slot", p) for p in (0, 15, 16, 31, 32, 47))),
    ),
    (
        "smaller blocks",
        "Blocks of 4, and block numbers that go down.",
        (_table("table", 4, [9, 3, 0]), *(_ask("slot", p) for p in (2, 6, 11))),
    ),
    (
        "growing",
        "The table begins empty, gets two blocks, nothing, then one more.",
        (
            *(_table("table", 16), _state(), _ask("append_blocks", [5, 2]), _state()),
            *(_ask("append_blocks", []), _ask("append_blocks", [8]), _state(), _ask("slot", 33)),
        ),
    ),
    (
        "outside",
        "Positions that have no slot: behind the last one, before the first, any in an empty "
        "table.",
        (
            *(THREE, _ask("slot", 48), _ask("slot", -1), _table("empty", 16)),
            [Operation((0,), "empty", "slot")],
        ),
    ),
    (
        "slots of a step",
        "A step computes several tokens: the slots of start up to, not including, end.",
        (
            *(_table("table", 4, [6, 1, 3]), _ask("slot_mapping", 0, 4)),
            *(_ask("slot_mapping", *ends) for ends in ((3, 9), (5, 5), (10, 13))),
        ),
    ),
    (
        "slots of no step",
        "Positions without a slot again: some before the first token, and one in an empty table.",
        (
            *(_table("table", 4, [6, 1, 3]), _ask("slot_mapping", -1, 2), _table("empty", 4)),
            [
                Operation((0, 1), "empty", "slot_mapping"),
                Operation((0, 0), "empty", "slot_mapping"),
            ],
        ),
    ),
    (
        "release, and again",
        "The request has finished. Its table gives up its blocks and is then used once more.",
        (
            *(THREE, _ask("release"), _state(), _ask("slot", 0)),
            *(_ask("append_blocks", [4]), _state(), _ask("slot", 3)),
        ),
    ),
    (
        "whose list",
        "Somebody changes a list after the table has seen it.",
        (_aliases(4, [5, 2], [8]),),
    ),
)


def visible() -> list[Case]:
    """The cases in the notebook."""
    return [_case(name, story, *parts) for name, story, parts in VISIBLE]


def hidden(seed: int) -> list[Case]:
    """12 longer scripts: tables that grow, are asked, released and used again; and one in which the
    caller changes its lists."""
    rng = random.Random(f"03.1/{seed}")
    cases = [_hidden_case(rng, size) for size in (1, 2, 3, 4, 5, 7, 8, 16, 16, 32, 100, 128)]
    first, second = (rng.sample(range(500), rng.randrange(1, 5)) for _ in range(2))
    aliases = _aliases(rng.choice((2, 4, 8)), first, second)
    return [*cases, _case("hidden", "A table with other numbers.", aliases)]


def _hidden_case(rng: random.Random, size: int) -> Case:
    parts = [_table("table", size)]
    for _ in range(2):
        blocks = rng.sample(range(500), rng.randrange(2, 7))
        cut = rng.randrange(len(blocks) + 1)
        parts += [_ask("append_blocks", blocks[:cut]), _ask("append_blocks", blocks[cut:])]
        parts += [_state(), _questions(rng, len(blocks) * size, size), _ask("release"), _state()]
        parts += [_ask("slot_mapping", 0, 1), _ask("slot_mapping", 0, 0)]
    return _case("hidden", "A table with other numbers.", *parts)


def _questions(rng: random.Random, slots: int, size: int) -> list[Operation]:
    """Slots on both sides of a border, anywhere and outside; mappings across a border."""
    border = size * rng.randrange(1, slots // size)
    start = rng.randrange(max(0, border - 20), border)
    end = min(slots, border + rng.randrange(1, 20))
    asked = [border - 1, border, rng.randrange(slots), slots - 1, slots, -1, -size - 1]
    ends = [(start, end), (end, end), (slots - 1, slots), (slots - 1, slots + 1)]
    ends += [(-1, 0), (-rng.randrange(1, size + 1), border)]
    parts = [_ask("slot", p) for p in asked] + [_ask("slot_mapping", *pair) for pair in ends]
    return [operation for part in parts for operation in part]


def _oracle(case: Case) -> list[Any]:
    seen = run(case.operations, PlainTable)
    return [_answer(one) for o, one in zip(case.operations, seen, strict=True) if not o.keep]


def _answer(one: Observation) -> Any:
    return Raises(one.fault.kinds[0]) if one.fault else plain.decode(one.value)


CHECK = Check(visible, hidden, _oracle, explain=explain, picture=picture)
