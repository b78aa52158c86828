"""06.1 RequestState(request_id): lives of requests, legal and not.

The oracle plays each life on PlainState.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from minipaged.course import plain
from minipaged.course.checks.base import Check, Failure, Raises
from minipaged.course.checks.lesson_06_moves import IDEAS, MOVES, STATES, PlainState
from minipaged.course.plain import Kept
from minipaged.course.script import Case, Operation, run

FINAL = "FINISHED is final: its blocks are free, its id may be used again, and no move leads out."
WORDS = (
    "The message of a refusal names the request, the state that it is in, the state that was asked "
    "for, and every state that it may go to. Whoever reads it has nothing else to go by."
)
RULES = {
    "move_to": "Only the moves in the list are legal; each other one is refused with RuntimeError.",
    "num_preemptions": "num_preemptions counts the moves out of RUNNING that do not end a request.",
    "holds_blocks": "Blocks of the device belong to requests that run, and to nobody else.",
    "state": "state is the last state that was reached by a legal move.",
    "": "RequestState(request_id) makes a request that waits.",
}


def visible() -> list[Case]:
    """Lives as they are, then moves that must not be."""
    return [
        _life("a life", "A waits, runs, and ends.", "RUNNING FINISHED"),
        _life(
            "preempted",
            "A is preempted twice, and comes back each time.",
            "RUNNING PREEMPTED RUNNING PREEMPTED RUNNING FINISHED",
        ),
        _life("swapped", "A is swapped out and in again.", "RUNNING SWAPPED RUNNING FINISHED"),
        _life(
            "swapped, then dropped",
            "A is swapped out. The host's memory is needed, so its copy is dropped there.",
            "RUNNING SWAPPED PREEMPTED RUNNING SWAPPED FINISHED",
        ),
        _life("given up in line", "The user of A goes away before its turn.", "FINISHED"),
        _life("given up later", "A is preempted; then its user goes away.", "RUNNING PREEMPTED F"),
        _refused("WAITING", "", "PREEMPTED SWAPPED WAITING"),
        _refused("RUNNING", "RUNNING", "WAITING RUNNING"),
        _refused("PREEMPTED", "RUNNING PREEMPTED", "WAITING SWAPPED PREEMPTED"),
        _refused("SWAPPED", "RUNNING SWAPPED", "WAITING SWAPPED"),
        _refused("FINISHED", "RUNNING FINISHED", "WAITING RUNNING PREEMPTED SWAPPED FINISHED"),
        _told(),
    ]


def _life(name: str, story: str, states: str) -> Case:
    moves = [state.replace("F", "FINISHED") if state == "F" else state for state in states.split()]
    return Case(name, story, tuple(_begun("A") + [o for s in moves for o in _move(s)]))


def _refused(state: str, way: str, others: str) -> Case:
    operations = _begun("A") + [Operation((s,), "request", "move_to") for s in way.split()]
    for other in others.split():
        operations += [Operation((other,), "request", "move_to"), _look("state")]
    end = [Operation(("FINISHED",), "request", "move_to")] if state != "FINISHED" else []
    operations += [_look("num_preemptions"), _look("holds_blocks"), *end]
    return Case(
        f"not from {state}", f"A is {state}. Where must it not go from there?", tuple(operations)
    )


def _told() -> Case:
    operations = _begun("chat-17")
    operations += [_words("chat-17", "WAITING", "SWAPPED", "RUNNING", "FINISHED")]
    operations += [Operation(("RUNNING",), "request", "move_to")]
    operations += [_words("chat-17", "RUNNING", "WAITING", "PREEMPTED", "SWAPPED", "FINISHED")]
    operations += [Operation(("STOPPED",), "request", "move_to"), _look("state")]
    operations += [_look("request_id")]
    story = "Which words does the message of a refusal lack? And STOPPED is no state at all."
    return Case("what a refusal says", story, tuple(operations))


def _begun(request_id: str) -> list[Operation]:
    made = Operation((request_id,), keep="request")
    return [made, _look("state"), _look("holds_blocks"), _look("num_preemptions")]


def _move(state: str) -> list[Operation]:
    looks = [_look(name) for name in ("state", "holds_blocks", "num_preemptions")]
    return [Operation((state,), "request", "move_to"), *looks]


def _look(name: str) -> Operation:
    return Operation((), "request", name, how="get")


def _words(request_id: str, state: str, asked: str, *legal: str) -> Operation:
    """Which of its words the refusal of a move lacks."""
    words = [request_id, state, asked, *legal]
    return Operation((Kept("request"), "move_to", asked, words), "words_missing")


WAYS = {
    "WAITING": "",
    "RUNNING": "RUNNING",
    "PREEMPTED": "RUNNING PREEMPTED",
    "SWAPPED": "RUNNING SWAPPED",
    "FINISHED": "RUNNING FINISHED",
}


def hidden(seed: int) -> list[Case]:
    """Every move out of every state, on requests of other names; then 5 random lives."""
    rng = random.Random(f"06.1/{seed}")
    return [_all_from(rng, state) for state in STATES] + [_random_life(rng) for _ in range(5)]


def _all_from(rng: random.Random, state: str) -> Case:
    operations = []
    for target in rng.sample((*STATES, "PAUSED"), 6):
        name = f"{rng.choice('abcd')}-{rng.randrange(10, 100)}"
        operations += _begun(name)
        operations += [Operation((s,), "request", "move_to") for s in WAYS[state].split()]
        if not _is_legal(state, target):
            operations.append(_words(name, state, target, *_legal_from(state)))
        operations += _move(target)
    return Case("hidden", "Other requests.", tuple(operations))


def _random_life(rng: random.Random) -> Case:
    name = f"{rng.choice('abcd')}-{rng.randrange(10, 100)}"
    state, operations = "WAITING", _begun(name)
    for _ in range(14):
        legal = [target for target in _legal_from(state) if target != "FINISHED"]
        target = rng.choice(legal if rng.random() < 0.6 else STATES[:4])
        operations += _move(target)
        state = target if target in legal else state
    return Case("hidden", "Another request.", (*operations, *_move("FINISHED")))


def _is_legal(state: str, target: str) -> bool:
    return state[:1] + target[:1] in MOVES and target in STATES


def _legal_from(state: str) -> list[str]:
    return [target for target in STATES if _is_legal(state, target)]


def _oracle(case: Case) -> list[Any]:
    seen = run(case.operations, PlainState)
    return [
        Raises(one.fault.kinds[0]) if one.fault else plain.decode(one.value)
        for operation, one in zip(case.operations, seen, strict=True)
        if not operation.keep
    ]


def explain(failure: Failure) -> str:
    """The wrong idea that gives the same answers, else the rule for what was asked."""
    operation = failure.operation
    if operation.target == "words_missing":
        return WORDS
    said = _accepted_or_refused(failure) or _idea_behind(failure)
    if said:
        return said
    if _state_before(failure.case, failure.number) == "FINISHED":
        return FINAL
    return RULES.get(operation.method if operation.target else "", RULES["move_to"])


def _idea_behind(failure: Failure) -> str:
    """The first wrong idea that gives this answer, and the right ones before it."""
    if failure.fault:
        return ""
    operations = failure.case.operations[: failure.number + 1]
    right = _answers(operations, "")
    for flaw, sentence in IDEAS.items():
        came = _answers(operations, flaw)
        if came[:-1] == right[:-1] and plain.same(came[-1], failure.got):
            return sentence
    return ""


def _answers(operations: Sequence[Operation], flaw: str) -> list[Any]:
    """What each operation gives, or the exception that it raises."""
    seen = run(operations, lambda request_id: PlainState(request_id, flaw))
    return [Raises(one.fault.kinds[0]) if one.fault else plain.decode(one.value) for one in seen]


def _accepted_or_refused(failure: Failure) -> str:
    """What is said of a move that was accepted or refused wrongly."""
    operation = failure.operation
    if operation.method != "move_to" or type(operation.args[0]) is not str:
        return ""
    before, after = _state_before(failure.case, failure.number), operation.args[0]
    if before == "FINISHED":
        return FINAL
    verb = "allows" if isinstance(failure.expected, Raises) else "refuses"
    stays = IDEAS["stays"] if before == after and verb == "allows" else ""
    return stays or IDEAS.get(f"{verb} {before[:1]}{after[:1]}", "")


def _state_before(case: Case, number: int) -> str:
    if number == 0:
        return ""
    seen = run((*case.operations[:number], _look("state")), PlainState)
    return str(plain.decode(seen[-1].value))


def picture(case: Case, number: int) -> str:
    """Where the request is before an operation, and where it may go."""
    state = _state_before(case, number)
    if not state:
        return ""
    return f"{state}, from where it may go to {', '.join(_legal_from(state)) or 'no other state'}"


CHECK = Check(visible, hidden, _oracle, explain=explain, picture=picture)
