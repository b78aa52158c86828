"""Exercise 01.3, FirstFit: scripts over a small memory, checked against a row of slots.

Wrong rows, one a misconception, tell which rule a learner's class breaks: the one that answers as
it did.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from minipaged.course.checks.base import Check, Failure, Raises
from minipaged.course.checks.lesson_01_rows import (
    BestFit,
    LastFit,
    MergesBefore,
    MergesBehind,
    NextFit,
    Row,
    StrictFit,
    Unmerged,
    WorstFit,
)
from minipaged.course.script import Case, Operation

MERGE = (
    "Neighbouring gaps must become one: two that touch hold a request that neither of them holds "
    "alone."
)
RULES: tuple[tuple[type[Row], str], ...] = (
    (MergesBefore, MERGE + " Look at the gap behind the freed slots."),
    (MergesBehind, MERGE + " Look at the gap before the freed slots."),
    (Unmerged, MERGE),
    (StrictFit, "A gap that fits exactly is large enough."),
    (
        BestFit,
        "First fit, not best fit: the gap with the lowest start that is large enough, even if a "
        "later one fits more closely.",
    ),
    (
        WorstFit,
        "First fit, not worst fit: the gap with the lowest start that is large enough, even if a "
        "later one is larger.",
    ),
    (LastFit, "First fit takes the gap with the lowest start; the search has to begin at slot 0."),
    (NextFit, "Every search begins at slot 0 again, not where the last one ended."),
)
ALL_OR_NOTHING = (
    "All or nothing: a call that is refused leaves the memory exactly as it was, so test first and "
    "change afterwards."
)
DOUBLE_FREE = (
    "Only a start that allocate returned, and that was not given back since, may be freed. "
    "Anything else is a double free or a wrong address: a ValueError."
)
LENGTH = "A length below 1 is no request: a ValueError."
REFUSE = (
    "Where no gap is large enough the answer is a MemoryError, even if enough slots are free in "
    "all."
)


def replay(case: Case, number: int, model: type[Row] = Row) -> tuple[Row, list[Any]]:
    """The memory before operation `number`, and what the operations up to and with it answer."""
    memory = model(case.operations[0].args[0])
    answers: list[Any] = []
    for operation in case.operations[1:number]:
        answers.append(memory.do(operation))
    return memory, answers


def oracle(case: Case) -> list[Any]:
    """The row's answers."""
    return replay(case, len(case.operations))[1]


def picture(case: Case, number: int) -> str:
    """The memory before a step, a character a slot."""
    if number == 0:
        return ""
    return replay(case, number)[0].drawn() + "   (. is free)"


def explain(failure: Failure) -> str:
    """The rule that was broken, found by what the class answered."""
    got = Raises(failure.fault) if failure.fault else failure.got
    if isinstance(failure.expected, Raises) and failure.expected.kind == "ValueError":
        return LENGTH if failure.operation.method == "allocate" else DOUBLE_FREE
    if _follows_refusal(failure):
        return ALL_OR_NOTHING
    right = oracle(failure.case)[: failure.number - 1]
    for model, sentence in RULES:
        try:
            *before, answer = replay(failure.case, failure.number + 1, model)[1]
        except (IndexError, ValueError):
            continue
        if before == right and answer == got:
            return sentence
    return REFUSE if isinstance(failure.expected, Raises) else ""


def _follows_refusal(failure: Failure) -> bool:
    """Whether a number read after a refused call, before anything else happened, is off."""
    if failure.number == 0 or failure.operation.how != "get":
        return False
    answers = oracle(failure.case)[: failure.number - 1]
    calls = failure.case.operations[1 : failure.number]
    done = [a for a, call in zip(answers, calls, strict=True) if call.how == "call"]
    return bool(done) and isinstance(done[-1], Raises)


def _script(name: str, story: str, num_slots: int, steps: Sequence[str]) -> Case:
    """A case from steps as VISIBLE has them."""
    operations = [Operation((num_slots,), keep="memory")]
    for step in steps:
        operations += _STEPS[step[0]](step[1:])
    return Case(name, story, tuple(operations))


_STEPS: dict[str, Any] = {
    "a": lambda n: [Operation((int(n),), "memory", "allocate")],
    "f": lambda n: [Operation((int(n),), "memory", "free")],
    "n": lambda n: [Operation((), "memory", "num_free", how="get")],
    "g": lambda n: [Operation((), "memory", "largest_gap", how="get")],
}


# name | story | slots | steps: "a6" allocates 6, "f3" frees what starts at 3, "n" and "g" ask for
# num_free and largest_gap
VISIBLE = """
side by side | Three requests, one behind the other. | 16 | n g a6 a4 a2 n g
from the start | Each search begins at slot 0 again. | 15 | a3 a3 a3 a3 a3 f0 f6 a3 a3 f0 f12 a3 n g
the first gap | Three gaps are large enough, the second one exactly. | 16 | a4 a2 a3 a2 f0 f6 a3 n g
an exact fit | The gap has precisely the length that is asked for. | 12 | a4 a4 a4 f4 a4 n g
too scattered | Enough slots are free in all, but not in a row. | 12 | a4 a4 a4 f0 f8 n g a5 n g a4
gap behind | What is freed touches a gap behind it. | 12 | a4 a4 a4 f8 f4 g a8 n
gap before | What is freed touches a gap before it. | 12 | a4 a4 a4 f0 f4 g a8 n
gaps on both sides | What is freed joins two gaps. | 12 | a4 a4 a4 f0 f8 f4 g a12 n g
freed twice | Nothing starts there any more. | 12 | a4 a4 f0 f0 n g f4 f4 n g
not a start | A slot in the middle of a request, and one outside. | 12 | a4 a4 f1 f8 f99 f-4 n g f4
no length | Nobody can ask for no slots, or for fewer. | 8 | a0 a-1 n a8 n g a1
"""


def visible() -> list[Case]:
    """One case a rule."""
    rows = [line.split(" | ") for line in VISIBLE.strip().splitlines()]
    return [_script(name, story, int(slots), steps.split()) for name, story, slots, steps in rows]


def hidden(seed: int) -> list[Case]:
    """Twelve random scripts of 50 steps."""
    rng = random.Random(f"01.3/{seed}")
    return [_random_case(rng) for _ in range(12)]


def _random_case(rng: random.Random) -> Case:
    num_slots = rng.randrange(8, 40)
    row, steps = Row(num_slots), []
    longest = rng.choice((num_slots // 4, num_slots // 3, num_slots // 2))
    for _ in range(50):
        starts = [slot for slot in range(num_slots) if row.starts(slot)]
        kind = rng.choice("aaaafffng")
        if kind == "f" and starts and rng.random() < 0.85:
            step = f"f{rng.choice(starts)}"
        elif kind == "f":
            step = f"f{rng.randrange(-1, num_slots + 1)}"
        else:
            step = f"a{rng.randrange(-1, longest + 2)}" if kind == "a" else kind
        row.do(_STEPS[step[0]](step[1:])[0])
        steps.append(step)
    return _script("hidden", "Other requests, in another order.", num_slots, [*steps, "n", "g"])


FIRST_FIT = Check(visible, hidden, oracle, explain=explain, picture=picture)
