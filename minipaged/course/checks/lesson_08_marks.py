"""08.3 WaterMarks(config): when somebody may enter, and when somebody has to leave early.

The oracle makes two sets of numbers of free blocks out of the marks and looks numbers up in them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from minipaged.course import plain
from minipaged.course.checks.base import Check, Failure, Row
from minipaged.course.script import Case, Operation

MOST = 500  # more free blocks than any case has


class Marks(NamedTuple):
    """Three settings, in blocks."""

    low: int = 0
    high: int = 0
    headroom: int = 0


class Gate:
    """The rule, by sets: what may be free before an admission, and what may be left after it."""

    def __init__(self, marks: Marks) -> None:
        self.open = set(range(marks.high, MOST))
        self.left = set(range(marks.low, MOST)) & set(range(marks.headroom, MOST))
        self.too_few = set(range(marks.low))

    def ask(self, method: str, *args: int) -> bool:
        """must_shed(num_free), or the gate itself (blocks_needed, num_free)."""
        if method:
            return args[0] in self.too_few
        return args[1] in self.open and args[1] - args[0] in self.left


Rule = Callable[[Marks, int, int], Any]
Shed = Callable[[Marks, int], Any]


def _admit(marks: Marks, needed: int, free: int) -> bool:
    return Gate(marks).ask("", needed, free)


def _shed(marks: Marks, free: int) -> bool:
    return Gate(marks).ask("must_shed", free)


# what is wrong with the gate; what is wrong with must_shed
ADMITS: tuple[tuple[Rule, str], ...] = (
    (
        lambda m, needed, free: needed + m.headroom <= free and free >= m.high,
        "An admission may leave fewer blocks than the low mark, and then somebody has to go again "
        "at once. Count what is left over, not only what is there before.",
    ),
    (
        lambda m, needed, free: free - needed >= max(m.low, m.high, m.headroom),
        "The high mark is for the blocks that are free *before* an admission. What is left after "
        "it only has to reach the low mark and the headroom.",
    ),
    (
        lambda m, needed, free: free >= m.low and free - needed >= max(m.low, m.headroom),
        "The high mark plays no part here: between the two marks nobody may enter.",
    ),
    (
        lambda m, needed, free: free > m.high and free - needed >= max(m.low, m.headroom),
        "With exactly as many free blocks as the high mark says the gate is open: only *below* it "
        "nobody enters.",
    ),
    (
        lambda m, needed, free: free >= m.high and free - needed > max(m.low, m.headroom),
        "What is left over may be exactly the low mark, or exactly the headroom.",
    ),
    (
        lambda m, needed, free: free >= m.high and free - needed >= m.low,
        "admission_headroom is missing: so many blocks have to be left over as well.",
    ),
    (
        lambda m, needed, free: free >= m.high and free - needed >= m.low + m.headroom,
        "Low mark and headroom are not added up: what is left over has to reach each of them.",
    ),
    (
        lambda m, needed, free: free >= m.high and free - needed >= min(m.low, m.headroom),
        "Only the smaller of low mark and headroom was asked for. What is left over has to reach "
        "both.",
    ),
    (
        lambda m, needed, free: free >= m.high,
        "It is not asked whether the request fits: blocks_needed plays no part here.",
    ),
    (
        lambda m, needed, free: free < m.high and free - needed >= max(m.low, m.headroom),
        "This reads the high mark the other way round. Both marks are of *free* blocks: many free "
        "blocks open the gate.",
    ),
)
SHEDS: tuple[tuple[Shed, str], ...] = (
    (
        lambda m, free: free <= m.low,
        "With exactly as many free blocks as the low mark says nobody has to go. And a mark of 0 "
        "is switched off: it sheds nobody, not even with no block free.",
    ),
    (
        lambda m, free: free < m.high,
        "must_shed goes by the low mark. Between the two marks nobody enters and nobody leaves; "
        "that gap is what keeps them apart.",
    ),
    (
        lambda m, free: free > m.low,
        "This reads the low mark the other way round. Both marks are of *free* blocks: few free "
        "blocks make somebody leave.",
    ),
    (lambda m, free: False, "must_shed never asks anybody to leave: the low mark has no effect."),
    (lambda m, free: True, "must_shed always asks somebody to leave."),
)
NO_MEMORY = (
    "The answer depends on earlier calls. What counts is the settings and the numbers of this call."
)
MADE = (
    "WaterMarks(config) keeps what it needs of config on self; gate(blocks_needed, num_free) is "
    "__call__."
)


class Asked(NamedTuple):
    """One call: marks, method, arguments, and the answer."""

    marks: Marks
    method: str
    args: tuple[int, ...]
    got: Any


def calls(rows: Sequence[Row]) -> Iterator[Asked]:
    """The calls of scripts. A call with one number is must_shed's."""
    marks = Marks()
    for row in rows:
        if row.args and type(row.args[0]) is dict:
            marks = _marks_of(row.args[0])
        elif row.args and type(row.args[0]) is int:
            yield Asked(marks, "must_shed" if len(row.args) == 1 else "", row.args, row.got)


def diagnose(rows: Sequence[Row]) -> str:
    """The wrong idea behind the gate's answers, or else behind must_shed's."""
    asked = list(calls(rows))
    gates = [one for one in asked if not one.method]
    sheds = [one for one in asked if one.method]
    if any(one.got != _admit(one.marks, *one.args) for one in gates):
        said = (
            words
            for idea, words in ADMITS
            if all(idea(one.marks, *one.args) == one.got for one in gates)
        )
        return next(said, _remembers(gates))
    if any(one.got != _shed(one.marks, *one.args) for one in sheds):
        said = (
            words
            for idea, words in SHEDS
            if all(idea(one.marks, *one.args) == one.got for one in sheds)
        )
        return next(said, "")
    return ""


def _remembers(gates: Sequence[Asked]) -> str:
    """NO_MEMORY if the same call was answered in two ways."""
    answers: dict[Any, Any] = {}
    for one in gates:
        if answers.setdefault((one.marks, one.args), one.got) != one.got:
            return NO_MEMORY
    return ""


def explain(failure: Failure) -> str:
    """Only how the class is made; diagnose knows the rest."""
    return MADE if failure.fault and failure.operation.method != "must_shed" else ""


# name, story, marks, steps: "2/5" asks whether somebody who needs 2 blocks may enter with 5 free,
# "-1" whether somebody has to leave with 1 free
VISIBLE = (
    (
        "all off",
        "No mark is set: whoever fits may enter, and nobody has to leave early.",
        *(Marks(), "1/1 3/2 2/2 -0 -5 0/0"),
    ),
    (
        "blocks go down, and up again",
        "Low mark 50, high mark 200. The free blocks fall, then rise.",
        Marks(50, 200),
        "10/400 10/200 10/199 10/120 -120 -50 -49 -12 10/12 -60 10/60 10/120 10/199 10/200 -200",
    ),
    (
        "a large one at the high mark",
        "Low mark 50, high mark 200, and exactly 200 are free. How large may a request be?",
        *(Marks(50, 200), "100/200 150/200 151/200 200/200 190/240 190/239"),
    ),
    (
        "a low mark alone",
        "Low mark 3, no high mark.",
        *(Marks(3, 0), "1/3 1/4 2/4 -3 -2 -0 7/10 8/10"),
    ),
    (
        "a high mark alone",
        "High mark 6, no low mark: nobody has to leave, and many free blocks open the gate.",
        *(Marks(0, 6), "1/5 1/6 6/6 7/6 -0 -5 8/8"),
    ),
    (
        "headroom",
        "Four blocks have to be left over after an admission.",
        *(Marks(0, 0, 4), "1/4 1/5 3/6 6/10 7/10 -0 -3"),
    ),
    (
        "headroom and marks",
        "Low mark 2, high mark 8, headroom 5: the larger of the two is what has to be left over.",
        *(Marks(2, 8, 5), "2/7 2/8 3/8 4/8 6/11 7/11 -1 -2 -5"),
    ),
)


def visible() -> list[Case]:
    """Each setting alone, then together."""
    return [_case(*row) for row in VISIBLE]


def hidden(seed: int) -> list[Case]:
    """16 sets of marks, each asked at all the numbers around them, in random order and twice."""
    rng = random.Random(f"08.3/{seed}")
    cases = []
    for number in range(16):
        low = rng.randrange(1, 20) if number % 4 else 0
        high = low + rng.randrange(1, 30) if number % 3 else 0
        headroom = rng.randrange(1, 25) if number % 2 else 0
        marks = Marks(low, high, headroom)
        cases.append(_case("hidden", "Other marks.", marks, _around(rng, marks)))
    return cases


def _around(rng: random.Random, marks: Marks) -> str:
    """Calls one below, at and above every limit."""
    edges = {edge + by for edge in marks for by in (-1, 0, 1) if edge + by >= 0}
    steps = [f"-{free}" for free in edges]
    enough = max(marks) + 3
    for free in {*edges, enough}:
        left = {free - edge + by for edge in marks for by in (-1, 0, 1)}
        steps += [f"{needed}/{free}" for needed in left if 0 <= needed <= free + 1]
    rng.shuffle(steps)
    return " ".join(steps + rng.sample(steps, min(4, len(steps))))


def _case(name: str, story: str, marks: Marks, steps: str) -> Case:
    config = {
        "low_water_blocks": marks.low,
        "high_water_blocks": marks.high,
        "admission_headroom": marks.headroom,
    }
    operations = [
        Operation((config,), "settings", keep="config"),
        Operation((plain.Kept("config"),), keep="gate"),
    ]
    for step in steps.split():
        if step.startswith("-"):
            operations.append(Operation((int(step[1:]),), "gate", "must_shed"))
        else:
            needed, free = step.split("/")
            operations.append(Operation((int(needed), int(free)), "gate"))
    return Case(name, story, tuple(operations))


def _marks_of(config: dict[str, int]) -> Marks:
    return Marks(
        config["low_water_blocks"], config["high_water_blocks"], config["admission_headroom"]
    )


def _oracle(case: Case) -> list[Any]:
    gate = Gate(_marks_of(case.operations[0].args[0]))
    return [gate.ask(o.method, *o.args) for o in case.operations if not o.keep]


def picture(case: Case, number: int) -> str:
    """The marks as they are set."""
    if number < 1:
        return ""
    marks = _marks_of(case.operations[0].args[0])
    return f"low {marks.low}   high {marks.high}   headroom {marks.headroom}   (0: off)"


CHECK = Check(visible, hidden, _oracle, diagnose, explain, picture)
