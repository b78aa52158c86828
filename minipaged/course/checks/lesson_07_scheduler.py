"""07.2 UnifiedScheduler: scripts at a desk that drives a scheduler step by step.

The oracle runs each script on the engine's own scheduler, whose steps are those of vLLM's. How a
scheduler gets there is nobody's business: what is looked at is who computes how many tokens in a
step, from where, and whether a token is drawn.
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from minipaged.course import plain
from minipaged.course.checks.base import Check, Failure
from minipaged.course.checks.lesson_07_words import (
    BUDGET_KEPT,
    DRAWN_EARLY,
    FLAWS,
    FORM,
    RULES,
    SHARED_AGAIN,
    of_complaint,
    of_fault,
)
from minipaged.course.fixture_victims import VictimDesk
from minipaged.course.script import Case, Operation, run
from minipaged.sched.scheduler import Scheduler

MAX_TRIES = 500


class Desk(NamedTuple):
    """The sizes of a script. victim: the place in `running` of whoever is preempted."""

    num_blocks: int = 30
    block_size: int = 4
    seats: int = 4
    budget: int = 8
    victim: int = -1


def visible() -> list[Case]:
    """Chunks, decodes beside them, places; then memory that runs out."""
    return [*_with_room(), *_under_pressure()]


def _with_room() -> Iterator[Case]:
    yield _case("one alone", "A prompt of 5 and 3 outputs.", Desk(), "A5,3 step*3 queues")
    yield _case(
        "a last chunk of one",
        "A prompt of 9 and a budget of 8. The second chunk has one token.",
        *(Desk(), "A9,3 step*4 outA whyA"),
    )
    yield _case(
        "many chunks",
        "A prompt of 40 by a budget of 16.",
        *(Desk(budget=16), "A40,2 step*4 queues"),
    )
    yield _case(
        "what is left is the chunk",
        "Budget 8. Two requests decode when a prompt of 10 comes.",
        *(Desk(), "A1,9 B1,9 step C10,3 step*3"),
    )
    yield _case(
        "a decode goes on",
        "Budget 4. One request decodes when a prompt of 12 comes.",
        *(Desk(budget=4), "A1,9 step B12,2 step*5 outA"),
    )
    yield _case(
        "two prompts in a step",
        "Budget 10. Two prompts wait, of 6 and 8 tokens, and one of 7 behind them.",
        *(Desk(budget=10), "A6,3 B8,3 C7,3 step*4 queues"),
    )
    yield _case(
        "fewer tokens than requests",
        "Three requests decode, and the budget is 2.",
        *(Desk(budget=2), "A1,3 B1,3 C1,3 step*6 queues"),
    )
    yield _case(
        "a lower budget",
        "Three requests decode when the budget is lowered to 2.",
        *(Desk(), "A1,4 B1,5 C1,3 step low2 step*6 queues"),
    )
    yield _case(
        "no place",
        "Two may run at once, three have come.",
        *(Desk(seats=2, budget=20), "A5,2 B3,4 C4,2 step*5 queues"),
    )


def _under_pressure() -> Iterator[Case]:
    yield _case(
        "computed again",
        "Blocks of one slot. B has 3 outputs when A needs its block. What B computes again is its "
        "prompt and its outputs.",
        *(Desk(14, 1, budget=20), "A5,8 B5,6 step*4 queues step*8 outB"),
    )
    yield _case(
        "again in chunks",
        "Budget 4. B has 2 outputs when A needs its block. It comes back once A is done, in "
        "chunks, and a token is drawn behind the last of them only.",
        *(Desk(11, 1, budget=4), "A3,8 B4,6 step*14 outB"),
    )
    yield _case(
        "behind a victim",
        "A takes B's block. C came later and would fit. B stands first in line again.",
        *(Desk(4, 4, budget=30), "A7,4 B7,4 step C1,2 step*2 queues step*3"),
    )
    yield _case(
        "its own victim",
        "B was admitted last and finds no block for its next token.",
        *(Desk(3, 4, budget=20), "A6,3 B4,4 step*2 queues step*5 queues"),
    )
    yield _case(
        "the first one goes",
        "Another rule for victims: the first in line. Its tokens stand in the plan already.",
        *(Desk(5, 4, budget=12, victim=0), "A7,5 B8,4 step*3 queues step*4"),
    )
    yield _case(
        "its budget comes back",
        "Budget 3. The first in line goes again, and C's chunk is one token longer for it.",
        *(Desk(7, 2, budget=3, victim=0), "A1,8 B1,10 C7,6 step*7"),
    )
    yield _case(
        "a chunk makes room",
        "Budget 3. C's chunk finds no block, and the first in line goes. The chunk has one token, "
        "as before.",
        *(Desk(5, 3, budget=3, victim=0), "A1,8 B1,8 C7,4 step*6"),
    )
    yield _case(
        "a prompt that does not fit yet",
        "B needs three blocks and one is free. C would fit. Nobody overtakes.",
        *(Desk(4, 4, budget=30), "A9,3 step B11,2 C2,2 step*3 queues step*2"),
    )
    yield _case(
        "not carried out",
        "The executor fails: all that ran wait again. Later the user of B goes away.",
        *(Desk(8, 4), "A6,3 B9,3 step fail queues step*2 xB step*2 queues"),
    )


def hidden(seed: int) -> list[Case]:
    """16 random days at the desk: short of memory, of seats, of budget; victims that were planned
    already, and requests that come back in chunks."""
    return list(_days(seed))


@functools.lru_cache(maxsize=8)  # some days are looked for among many
def _days(seed: int) -> tuple[Case, ...]:
    rng = random.Random(f"07.2/{seed}")
    tight = [_tight(rng, budget, victim) for budget in (4, 12) for victim in (-1, -1, 0)]
    seats = [_roomy(rng, rng.randrange(1, 3), 12) for _ in range(3)]
    small = [_roomy(rng, 8, rng.randrange(2, 4)) for _ in range(2)]
    given = [_until(_planned_victim, rng, flaw) for flaw in (BUDGET_KEPT, SHARED_AGAIN)]
    again = [_until(_back_in_chunks, rng, DRAWN_EARLY) for _ in range(3)]
    return (*tight, *seats, *small, *given, *again)


def _tight(rng: random.Random, budget: int, victim: int) -> Case:
    """Less memory than all together want."""
    size = rng.choice((1, 2, 4))
    slots = rng.randrange(14, 24)
    words = []
    for name in "ABCDE"[: rng.randrange(3, 6)]:
        prompt = rng.randrange(1, slots - 5)
        outputs = rng.randrange(2, 2 + min(7, slots - prompt))
        words += [f"{name}{prompt},{outputs}", *["step"] * rng.randrange(3)]
    desk = Desk(-(-slots // size), size, 8, budget + rng.randrange(3), victim)
    return _hidden_case(desk, words)


def _roomy(rng: random.Random, seats: int, budget: int) -> Case:
    """Memory for all; seats or budget are short."""
    words = []
    for name in "ABCD":
        prompt, outputs = rng.randrange(1, 7), rng.randrange(3, 6)
        words += [f"{name}{prompt},{outputs}", *["step"] * rng.randrange(2)]
    if budget < 8:
        words += ["step"] * 3 + [f"low{budget - 1}"]
    return _hidden_case(Desk(40, rng.choice((1, 4)), seats, budget), words)


def _planned_victim(rng: random.Random) -> Case:
    """Two decodes and a chunk; the second decode takes the first one's blocks."""
    size = rng.randrange(2, 4)
    desk = Desk(rng.randrange(5, 9), size, 8, 3, 0)
    prompt = rng.randrange(2 * size + 2, 3 * size + 2)
    lengths = [rng.randrange(8, 11), rng.randrange(8, 11), rng.randrange(3, 7)]
    return _hidden_case(desk, [f"A1,{lengths[0]}", f"B1,{lengths[1]}", f"C{prompt},{lengths[2]}"])


def _back_in_chunks(rng: random.Random) -> Case:
    """Two requests and a small budget; one of them is preempted with outputs."""
    prompts = [rng.randrange(3, 6) for _ in "AB"]
    words = [
        f"{name}{prompt},{rng.randrange(5, 8)}" for name, prompt in zip("AB", prompts, strict=True)
    ]
    desk = Desk(max(prompts) + rng.randrange(6, 9), 1, 8, rng.randrange(2, 5))
    return _hidden_case(desk, words)


def _until(make: Callable[[random.Random], Case], rng: random.Random, flaw: Any) -> Case:
    """A case that a flaw does not pass."""
    for _ in range(MAX_TRIES):
        case = make(rng)
        if answers_of(case, flaw) != answers_of(case, Scheduler):
            return case
    raise RuntimeError(f"no case among {MAX_TRIES} fails {flaw.__name__}: make likelier ones")


def _hidden_case(desk: Desk, words: Sequence[str]) -> Case:
    return _case("hidden", "Another day.", desk, " ".join(words) + " step*14 queues")


def _case(name: str, story: str, desk: Desk, words: str) -> Case:
    made = Operation((plain.Kept(""), *desk), "VictimDesk", keep="desk")
    return Case(name, story, (made, *(one for word in words.split() for one in _operations(word))))


WORDS = {"step": "step", "fail": "fail", "queues": "queues"}
ASKED = {"x": "abort", "out": "outputs", "why": "reason"}


def _operations(word: str) -> list[Operation]:
    """step and fail and queues, as often as *n says; A9,3 is a request; xA, outA, whyA ask; low2
    lowers the budget."""
    name, _, times = word.partition("*")
    if name in WORDS:
        return [Operation((), "desk", WORDS[name])] * int(times or 1)
    if name.startswith("low"):
        return [Operation((int(name.removeprefix("low")),), "desk", "lower")]
    if found := re.fullmatch(r"([A-Z])(\d+),(\d+)", name):
        return [Operation((found[1], int(found[2]), int(found[3])), "desk", "add")]
    return [Operation((name[-1],), "desk", ASKED[name[:-1]])]


def answers_of(case: Case, scheduler: Any) -> list[Any]:
    """What each operation of a case reports with a scheduler; an exception's class name for one
    that raised."""
    seen = run(case.operations, scheduler)
    return [plain.decode(one.value) if one.fault is None else one.fault.kinds[0] for one in seen]


def _oracle(case: Case) -> list[Any]:
    pairs = zip(case.operations, answers_of(case, Scheduler), strict=True)
    return [answer for operation, answer in pairs if not operation.keep]


def explain(failure: Failure) -> str:
    """The flaw that gives this very answer, what a complaint comes from, or the rule."""
    if failure.operation.keep:
        return FORM
    rule = RULES.get(failure.operation.method, RULES["step"])
    if failure.fault:
        return of_fault(failure.fault, rule)
    for flaw, sentence in FLAWS:
        if _gives(flaw, failure):
            return sentence
    return of_complaint(failure.got) or rule


def _gives(flaw: Any, failure: Failure) -> bool:
    part = failure.case._replace(operations=failure.case.operations[: failure.number + 1])
    came = answers_of(part, flaw)
    return plain.same(came[-1], failure.got) and came[:-1] == answers_of(part, Scheduler)[:-1]


def picture(case: Case, number: int) -> str:
    """Before a step: how far each request is, who runs and who waits, and the free blocks."""
    if not number or case.operations[number].method not in ("step", "fail"):
        return ""
    desk = VictimDesk(Scheduler, *case.operations[0].args[1:])
    for operation in case.operations[1:number]:
        getattr(desk, operation.method)(*operation.args)
    config, pool = desk.config, desk.manager.pool
    lines = [
        f"budget {config.max_num_batched_tokens}, places {config.max_num_seqs}, "
        f"{pool.num_free} of {pool.num_blocks} blocks of {desk.manager.block_size} free"
    ]
    for queue in ("running", "waiting"):
        for one in getattr(desk.scheduler, queue):
            known, computed = one.num_tokens, one.num_computed_tokens
            lines.append(f"{queue}  {one.request_id}: {computed} of {known} known tokens computed")
    return "\n".join(lines)


CHECK = Check(visible, hidden, _oracle, explain=explain, picture=picture)
