"""06.3 batch_steps(lengths, slots, refill): the oracle plays the slots, step by step."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from minipaged.course.checks.base import Check, Failure, Row
from minipaged.course.script import Case, Operation

E2 = [91, 24, 13, 104, 45, 41, 38, 27, 104, 23, 96, 104, 79, 21, 85, 64]
Answer = tuple[int, int]


def visible() -> list[Case]:
    """Claims E2, C21 and E7, then the borders."""
    return [
        _case("sixteen, static", E2, 4, False, "Sixteen answers in batches of four."),
        _case("sixteen, continuous", E2, 4, True, "The same, each slot refilled at once."),
        _case("four, static", [50, 500, 100, 150], 4, False, "One batch of four."),
        _case("three, static", [200, 5, 50], 3, False, "One batch of three."),
        _case("equal lengths", [7] * 6, 3, True, "Refilling gains nothing: all end together."),
        _case("equal, static", [7] * 6, 3, False, "The same six in two batches."),
        _case(
            "the order is kept", [1, 1, 9, 9], 2, True, "Nobody looks ahead for the longest first."
        ),
        _case("a late long one", [2, 2, 2, 2, 9], 2, True, "The last one runs alone."),
        _case("a short last batch", [3, 1, 4, 1, 5], 2, False, "Nobody is left for a slot."),
        _case("more slots than requests", [3, 5], 4, True, "Two slots have nothing to do."),
        _case("one slot", [3, 1, 4], 1, True, "One after the other."),
        _case("one slot, static", [3, 1, 4], 1, False, "Batches of one."),
        _case("nobody", [], 3, True, "No request at all."),
        _case("nobody, static", [], 3, False, "No request at all."),
    ]


def hidden(seed: int) -> list[Case]:
    """16 further cases, and two without requests."""
    rng = random.Random(f"06.3/{seed}")
    cases = []
    for number in range(16):
        slots = rng.randrange(2, 7)
        lengths = [rng.randrange(1, 40) for _ in range(3 * slots + rng.randrange(1, 3 * slots))]
        lengths.append(90)
        cases.append(_case("hidden", lengths, slots, number % 2 == 0, "Other lengths."))
    empty = [_case("hidden", [], 2 + seed % 3, refill, "No request.") for refill in (True, False)]
    return cases + empty


def _case(name: str, lengths: list[int], slots: int, refill: bool, story: str) -> Case:
    return Case(name, story, (Operation((lengths, slots, refill)),))


def played(lengths: Sequence[int], slots: int, refill: bool) -> Answer:
    """(steps, idle slot-steps), one step after the other."""
    line, left = list(lengths), [0] * slots  # steps that each slot has still to do
    steps = idle = 0
    while line or any(left):
        if refill or not any(left):
            for slot in range(slots):
                if not left[slot] and line:
                    left[slot] = line.pop(0)
        used = sum(todo > 0 for todo in left)
        idle += slots - used
        steps += 1
        left = [max(0, todo - 1) for todo in left]
    return steps, idle


def _in_turn(lengths: Sequence[int], slots: int) -> Answer:
    """Each slot has its own line."""
    sums = [sum(lengths[k::slots]) for k in range(slots)]
    return max(sums), max(sums) * slots - sum(lengths)


def _only_in_batches(lengths: Sequence[int], slots: int) -> Answer:
    """The idle slots of a batch that has fewer requests are left out."""
    batches = [lengths[k : k + slots] for k in range(0, len(lengths), slots)]
    steps = sum(map(max, batches))
    return steps, sum(max(batch) * len(batch) - sum(batch) for batch in batches)


def _full_batches(lengths: Sequence[int], slots: int) -> Answer:
    whole = len(lengths) // slots * slots
    return played(lengths[:whole], slots, False)


def _one_batch_short(lengths: Sequence[int], slots: int) -> Answer:
    """The last batch does not run, and the idle ones are what is left of the other steps."""
    starts = range(0, len(lengths), slots)
    steps = sum(max(lengths[k : k + slots]) for k in list(starts)[:-1])
    return steps, steps * slots - sum(lengths)


def _late(lengths: Sequence[int], slots: int) -> Answer:
    """A slot stands empty for a step between two requests."""
    ends = [0] * slots
    for length in lengths:
        first = ends.index(min(ends))
        ends[first] += length + (ends[first] > 0)
    return max(ends), max(ends) * slots - sum(lengths)


def _bound(lengths: Sequence[int], slots: int) -> Answer:
    steps = -(-sum(lengths) // slots)
    return steps, steps * slots - sum(lengths)


Mistake = tuple[Callable[[Sequence[int], int, bool], object], str]
MISTAKES: tuple[Mistake, ...] = (
    (
        lambda n, s, r: played(n, s, False),
        "With refill=True a slot takes the next request as soon as its own has ended. It does not "
        "wait for the batch.",
    ),
    (
        lambda n, s, r: played(n, s, not r),
        "The two kinds are swapped: refill=False waits for the longest of the batch, refill=True "
        "takes the next request at once.",
    ),
    (
        lambda n, s, r: played(sorted(n, reverse=True), s, r),
        "The longest went first. Requests start in the order in which they stand in the list.",
    ),
    (
        lambda n, s, r: played(sorted(n), s, r),
        "The shortest went first. Requests start in the order in which they stand in the list.",
    ),
    (
        lambda n, s, r: _in_turn(n, s) if r else None,
        "The requests were dealt out to the slots in turn beforehand. A slot has no line of its "
        "own: whichever becomes free first takes the next request of all.",
    ),
    (
        lambda n, s, r: _bound(n, s),
        "This is the lower bound, all work spread evenly. A request runs on one slot from its "
        "start to its end.",
    ),
    (
        lambda n, s, r: _late(n, s) if r else None,
        "A slot stood empty for a step before it was refilled. The next request starts in the very "
        "next step.",
    ),
    (
        lambda n, s, r: _only_in_batches(n, s) if not r else None,
        "All slots count, also those for which nobody is left in the last batch.",
    ),
    (
        lambda n, s, r: _full_batches(n, s) if not r else None,
        "The last batch has fewer requests than slots, but it runs like the others.",
    ),
    (
        lambda n, s, r: _one_batch_short(n, s) if not r else None,
        "The last batch was left out. It may have fewer requests than slots, even a single one, "
        "and it runs like the others.",
    ),
    (
        lambda n, s, r: (played(n, s, r)[0], sum(n)),
        "The second number is the slot-steps that were idle, not those that were used.",
    ),
    (
        lambda n, s, r: (played(n, s, r)[0], played(n, s, r)[0] * s),
        "The second number is the slot-steps that were idle, not all of them.",
    ),
    (
        lambda n, s, r: played(n, s, r)[::-1],
        "The two numbers are swapped: first the steps, then the idle slot-steps.",
    ),
)


def diagnose(rows: Sequence[Row]) -> str:
    """The first misconception that accounts for every wrong answer."""
    wrong = [row for row in rows if row.got != row.expected]
    for came, says in MISTAKES:
        if wrong and all(came(*row.args) == row.got for row in wrong):
            return says
    return ""


def explain(failure: Failure) -> str:
    """What an exception, or a list in place of a tuple, means here."""
    if failure.fault in ("ValueError", "ZeroDivisionError", "IndexError"):
        return "Without requests there is nothing to do: (0, 0). Slots may be more than requests."
    if type(failure.got) is list:
        return "Return a tuple: return steps, idle."
    return ""


def picture(case: Case, number: int) -> str:
    """A row for each slot, if it fits: who computes in each step, and dots."""
    lengths, slots, refill = case.operations[0].args
    if not lengths or sum(lengths) > 60:
        return ""
    rows, line, left = [""] * slots, list(enumerate(lengths)), [(0, 0)] * slots
    while line or any(todo for _, todo in left):
        is_open = refill or not any(todo for _, todo in left)
        for slot in range(slots):
            if is_open and not left[slot][1] and line:
                left[slot] = line.pop(0)
            who, todo = left[slot]
            rows[slot] += "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[who] if todo else "."
            left[slot] = who, max(0, todo - 1)
    return "\n".join(rows)


CHECK = Check(
    visible,
    hidden,
    lambda case: [played(*one.args) for one in case.operations],
    diagnose=diagnose,
    explain=explain,
    picture=picture,
)
