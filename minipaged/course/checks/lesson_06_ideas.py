"""06.2: the day at the desk played plainly, its wrong ideas, and what is told of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipaged.course import plain
from minipaged.course.checks.base import Failure
from minipaged.course.checks.lesson_06_plain import PlainDesk
from minipaged.course.fixture_plans import SPIN
from minipaged.course.script import Case, Operation

IDEAS = {
    "static": (
        "Nobody enters while others run: this is static batching. Look at the waiting line in "
        "every step, whoever runs."
    ),
    "overtakes": (
        "Somebody entered who stood behind one that could not. The first that cannot enter ends "
        "it: whoever needs much would wait for ever behind those who need little."
    ),
    "chunks": (
        "A prompt was cut to what was left of the budget. Here prompts are computed whole: if it "
        "does not fit into this step, it waits."
    ),
    "budget not lowered": (
        "Whoever enters uses as many tokens of the budget as it computes; what is left is for the "
        "next one."
    ),
    "decodes are free": (
        "Each request that runs uses one token of the budget in each step. Take them off before "
        "anybody enters."
    ),
    "no budget": "The budget counts the tokens of all requests in a step; it was exceeded.",
    "enters first": (
        "Those that run come first: they take their token of the budget and the block that they "
        "need, and what is left is for those that wait."
    ),
    "must be shorter": "A prompt of exactly as many tokens as are left of the budget fits.",
    "too long for all": (
        "A request that is longer than the whole budget enters when the plan is empty, and not "
        "beside others."
    ),
    "one a step": (
        "Only one request entered. As many enter in a step as there are places, budget and blocks."
    ),
    "first goes": (
        "The wrong one was preempted: the first admitted has computed longest. The one that was "
        "admitted last goes."
    ),
    "needy goes": (
        "The one that needs a block was preempted itself. The one that was admitted last goes, "
        "and the one in need tries again."
    ),
    "prompt only": (
        "A request that comes back computes all its known tokens, its outputs too: num_tokens, "
        "not num_prompt_tokens."
    ),
    "reserves": (
        "More blocks are taken than the tokens of this step need: grow by what is computed now, "
        "not by what may come. Holding blocks for the future is what paging is there to avoid."
    ),
    "leaves one": "A block was left unused although a request could have entered with it.",
    "own limit": (
        "A request ends with its max_output_tokens-th output. That is params.max_tokens, or less "
        "where the pool or the model has no room for so many."
    ),
    "one late": (
        "The request should have ended one output earlier: look at the count after the token was "
        "appended."
    ),
    "one early": "It ended one output too early: a request may write max_output_tokens.",
    "min reached": (
        "With exactly min_tokens outputs, the stop token among them, a request goes on: there have "
        "to be more."
    ),
    "min ignored": "Up to min_tokens outputs a stop token is a token like any other.",
    "min counted twice": (
        "The stop token counts as an output: with it there are more than min_tokens, so it ends."
    ),
    "never stops": "A stop token ends a request, whatever its max_output_tokens.",
    "length first": (
        "If the last output that is allowed is a stop token, the request ended by itself: stop is "
        "looked at first."
    ),
}
RULES = {
    "step": (
        "In a step each running request computes one token, and from the front of the line enter "
        "as many as places, budget and blocks allow, each with all its known tokens."
    ),
    "queues": (
        "running holds who runs, in the order of admission; waiting who waits, the next one first. "
        "Whoever ends is in neither, and its blocks are free."
    ),
    "outputs": "Each output is appended once, in order, until the request ends.",
    "reason": "finish(request, reason) says why a request ended: stop or length.",
}
MADE = (
    "The desk makes your class with (config, manager, ...). Leave __init__ to SchedulerBase, or "
    "call it."
)
# by words of what the desk says of a plan or of the queues
SAYINGS = (
    ("not the plan", "schedule returns the plan that it got from new_plan: `return plan`."),
    (
        SPIN,
        "Nothing is computed, nothing ends, so no block and no place comes free: the next step "
        "finds what this one found. Ask of the first in line: what is it waiting for, and who "
        "could bring that about? A request that is longer than the whole budget must be let in "
        "when nobody else is in the plan.",
    ),
    (
        "still holds blocks",
        "Blocks belong to those that run. grow takes them at once, so ask it last, when nothing "
        "else can keep the request out.",
    ),
    (
        "does not run",
        "A request was preempted or taken off the line and is in the plan all the same. A "
        "preemption shortens self.running while you walk along it: ask for the place of the next "
        "one each time, or whether it still runs. And whoever enters has to be put into running.",
    ),
    ("times", "One request, one share: each request is in the plan once, and in one line."),
    ("no slot", "Call self.manager.grow before put, with as many tokens as you put."),
    ("are not its own", "put takes the tokens from the first that is not computed."),
    ("the budget is", "In a step that it shares with others a request must fit into the budget."),
    ("max_num_seqs is", "Nobody enters while max_num_seqs requests run."),
    ("executor is not told", "Hand to put what grow has returned for this very request."),
    ("num_computed_tokens is", "take adds num_computed to request.num_computed_tokens."),
    (
        "goes on at token",
        "take adds num_computed to request.num_computed_tokens, once for each step.",
    ),
    ("new tokens", "take appends each new token to request.token_ids, and no other."),
    ("status is", "Whoever enters moves on: request.move_to(RequestStatus.RUNNING)."),
    ("no token to compute", "Only put a request into the plan if it has something to compute."),
)


def play(operations: Sequence[Operation], flaw: str = "") -> list[Any]:
    """What a desk answers to each operation that is not kept; the first one makes it."""
    desk = _desk(operations, flaw)
    return [getattr(desk, one.method)(*one.args) for one in operations if not one.keep]


def _desk(operations: Sequence[Operation], flaw: str = "") -> PlainDesk:
    _, blocks, size, seats, budget, alone = operations[0].args
    return PlainDesk(blocks, size, seats, budget, alone, flaw)


def explain(failure: Failure) -> str:
    """What the desk complained of, else the wrong idea that gives the same answer, else a rule."""
    if failure.operation.keep:
        return MADE
    said = _complaint(failure.got)
    if failure.fault:
        return _after_a_fault(failure)
    if said:
        if "but it does not run" in said and _is_first_victim(failure):
            return IDEAS["first goes"]
        return _idea_behind(failure) or next((rule for w, rule in SAYINGS if w in said), "")
    return _idea_behind(failure) or RULES.get(failure.operation.method, "")


def _complaint(got: Any) -> str:
    is_one = type(got) is list and len(got) == 1 and type(got[0]) is str
    return f"The desk says: {got[0]}." if is_one else ""


def _after_a_fault(failure: Failure) -> str:
    if failure.fault == "Endless":
        return (
            "A loop in schedule goes round without an end. Every reason why the first in line "
            "cannot enter must leave the loop: nothing changes by asking again."
        )
    if failure.fault == "TypeError":
        return (
            "grow returns None if too few blocks are free: ask for that before you hand to put "
            "what it returned."
        )
    if failure.fault == "RuntimeError":
        return (
            "Two things raise it here: a move that is not legal (exercise 06.1), and a `for` over "
            "a line that gets longer or shorter meanwhile. The exception says which."
        )
    if failure.fault == "AttributeError":
        return (
            "Compare the name with the task and with the given cell. If it is 'value': a request "
            "of the engine moves to RequestStatus.RUNNING, not to a text as in exercise 06.1."
        )
    if failure.fault in ("ValueError", "KeyError", "IndexError"):
        return (
            "A request leaves one line when it enters another, and a loop over a line must expect "
            "that it gets shorter, or empty, meanwhile."
        )
    return ""


def _idea_behind(failure: Failure) -> str:
    """The first wrong idea that gives this answer; one that gave the right ones before it first."""
    operations = failure.case.operations[: failure.number + 1]
    *before, _ = play(operations)
    near = ""
    for flaw, sentence in IDEAS.items():
        *others, last = _played(operations, flaw)
        if not _is_same(operations, last, failure.got):
            continue
        if others == before:
            return sentence
        near = near or sentence
    return near


def _is_first_victim(failure: Failure) -> bool:
    """Whether the one that is planned and does not run was the first admitted, and preempted."""
    operations = failure.case.operations[: failure.number + 1]
    plans = [_played(operations, flaw)[-1] or [] for flaw in ("", "first goes")]
    right, wrong = ({item[0] for item in plan} for plan in plans)
    return str(failure.got[0]).partition(" ")[0] in right - wrong


def _played(operations: Sequence[Operation], flaw: str) -> list[Any]:
    """As play; a flaw can make a day impossible."""
    try:
        return play(operations, flaw)
    except (ValueError, IndexError):
        return [None]


def _is_same(operations: Sequence[Operation], last: Any, got: Any) -> bool:
    """Whether a desk would answer so: with the same plan, or by refusing it for its size."""
    if type(last) is list and len(last) > 1 and operations[-1].method in ("step", "fail"):
        tokens = sum(count for _, _, count, _ in last)
        if tokens > operations[0].args[4]:
            return f"the plan has {tokens} tokens" in _complaint(got)
    return plain.same(last, got)


def picture(case: Case, number: int) -> str:
    """The two lines and the free blocks before an operation, as they should be."""
    if number == 0:
        return ""
    desk = _desk(case.operations)
    for one in case.operations[1:number]:
        getattr(desk, one.method)(*one.args)
    lines = []
    for name, line in (("running", desk.running), ("waiting", desk.waiting)):
        words = [
            f"{row.name} {row.computed} of {row.known} tokens, {_blocks(row.blocks)}"
            for row in line
        ]
        lines.append(f"{name}  {'; '.join(words) or 'nobody'}")
    limits = f"budget {desk.budget}, places {desk.seats}, blocks of {desk.size}"
    return "\n".join([*lines, f"free     {_blocks(desk.free)} ({limits})"])


def _blocks(count: int) -> str:
    return f"{count} block{'' if count == 1 else 's'}"
