"""02.1 FreeQueue(num_blocks): ids in order, and every operation takes the same few steps.

The oracle runs each script on the plain, slow queue of fixtures.py. A script ends with `cost`
operations on a long queue: whoever searches or shifts is found by the count, not by a clock. How
the queue is built is nobody's business: links in lists, nodes or an ordered dict all pass.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from minipaged.course.checks.base import AtMost, Check, Failure, Raises
from minipaged.course.fixtures import PlainQueue
from minipaged.course.script import HOW, Case, Operation

LONG = 4096  # ids in the queue on which steps are counted
MAX_STEPS = 100  # of one call; links take about 10, a search takes half the queue and more
CHANGES = ("pop_head", "append", "prepend", "remove")
REFUSALS = (IndexError, ValueError, MemoryError)


def replay(case: Case, make: Callable[..., Any], end: int | None = None) -> tuple[list[Any], Any]:
    """Run a script, or its first `end` operations, on a plain model.

    Returns what is expected of each operation that is not kept, and the model afterwards (None if
    it was not made yet).
    """
    expected: list[Any] = []
    model = None
    for operation in case.operations[:end]:
        if operation.how == "cost":
            expected.append(AtMost(MAX_STEPS))
            continue
        target = model if operation.target else make
        subject = getattr(target, operation.method) if operation.method else target
        try:
            value = HOW[operation.how](subject, *operation.args)
        except REFUSALS as error:
            value = Raises(type(error).__name__)
        if operation.keep:
            model = value
        else:
            expected.append(value)
    return expected, model


def visible() -> list[Case]:
    """Each rule once, each end of the queue once, and a long queue whose steps are counted."""
    return [
        _case("a fresh queue", "All four ids are free, in ascending order.", 4, LEN, _in(3)),
        _case("pop the head", "Two ids are handed out.", 4, POP, ORDER, POP, ORDER, LEN, _in(0)),
        _case(
            "back in line",
            "Of two ids that were handed out, one comes back to the tail and one to the head.",
            *(4, POP, POP, _do("append", 0), ORDER, _do("prepend", 1), ORDER, LEN, _in(0)),
        ),
        _case(
            "out of the middle",
            "Somebody wants a certain id that stands between two others, then its neighbour.",
            *(6, _do("remove", 2), ORDER, LEN, _in(2), _do("remove", 3), ORDER),
            *(_do("remove", 1), ORDER, _do("append", 2), ORDER),
        ),
        _case(
            "out of the head",
            "The certain id happens to be the first.",
            *(4, _do("remove", 0), ORDER, POP, _do("prepend", 0), ORDER),
        ),
        _case(
            "out of the tail",
            "The certain id happens to be the last; then another one joins the queue.",
            *(4, _do("remove", 3), ORDER, POP, _do("append", 0), ORDER, LEN),
        ),
        _case(
            "empty, then in at the head",
            "The pool runs dry, asks once more, and gets a block back at the head.",
            *(2, POP, POP, LEN, POP, ORDER, _do("prepend", 1), ORDER, _do("append", 0), ORDER, LEN),
        ),
        _case(
            "empty, then in at the tail",
            "One block in all: it goes out, comes back, is taken out by its id, comes back.",
            *(1, POP, _do("append", 0), ORDER, _do("remove", 0), LEN, _do("append", 0), ORDER, POP),
        ),
        _case(
            "queued twice",
            "An id that stands in the queue is added again, at either end.",
            *(3, _do("append", 1), ORDER, LEN, _do("prepend", 2), ORDER, LEN),
        ),
        _case(
            "not in the queue",
            "An id that was handed out is to be removed, and ids that do not exist.",
            *(3, POP, _do("remove", 0), _do("remove", 3), _do("remove", -1), _in(-1), _in(3)),
            *(ORDER, LEN),
        ),
        _costs(LONG),
    ]


def hidden(seed: int) -> list[Case]:
    """12 random scripts and 2 long queues of other lengths."""
    rng = random.Random(f"02.1/{seed}")
    scripts = [_random_case(rng) for _ in range(12)]
    return scripts + [_costs(rng.randrange(LONG // 2, LONG)) for _ in range(2)]


def _random_case(rng: random.Random) -> Case:
    num_blocks = rng.randrange(1, 8)
    operations = []
    for _ in range(12):
        method = rng.choice((*CHANGES, "remove"))
        args = () if method == "pop_head" else (rng.randrange(num_blocks),)
        operations += [_do(method, *args), ORDER, LEN]
    return _case("hidden", "A queue of another length.", num_blocks, *operations)


def _costs(num_blocks: int) -> Case:
    """Steps counted: near the middle, where a search is long from either end."""
    middle = num_blocks // 2
    calls = [_do("remove", middle), _do("__contains__", middle - 1), _do("append", middle), POP]
    calls += [_do("remove", middle + 1), _do("prepend", middle + 1), _do("__len__")]
    counted = [call._replace(how="cost") for call in calls]
    story = "A long queue: each call may take a few steps, however many ids are queued."
    made = Operation((num_blocks,), keep="queue")
    return Case(f"{num_blocks:,} ids", story, (made, *counted))


def _do(method: str, *args: int) -> Operation:
    return Operation(args, "queue", method)


def _in(block_id: int) -> Operation:
    return Operation((block_id,), "queue", how="in")


ORDER, LEN = Operation((), "queue", how="list"), Operation((), "queue", how="len")
POP = _do("pop_head")


def _case(name: str, story: str, num_blocks: int, *operations: Operation) -> Case:
    return Case(name, story, (Operation((num_blocks,), keep="queue"), ORDER, *operations))


def _oracle(case: Case) -> list[Any]:
    return replay(case, PlainQueue)[0]


REFUSED = "A call that is refused changes nothing: neither the order nor the number of ids."
REFUSE = {
    "pop_head": "An empty queue has no first id: pop_head raises IndexError then.",
    "append": "An id is queued at most once: one that is queued already is refused (ValueError).",
    "prepend": "An id is queued at most once: one that is queued already is refused (ValueError).",
    "remove": (
        "remove refuses an id that is not queued (ValueError). One that does not exist is not "
        "queued either; mind that a list takes a negative index for one counted from its end."
    ),
}
LAWS = {
    "": "A fresh queue holds all ids from 0 on, in ascending order.",
    "pop_head": "pop_head takes the first id out; the one behind it is the head from then on.",
    "append": (
        "append puts an id behind the last one. Three calls move the tail: append, a remove of "
        "the last id, and a prepend into an empty queue."
    ),
    "prepend": (
        "prepend puts an id before the first one. Three calls move the head: prepend, taking the "
        "first id out, and an append into an empty queue."
    ),
    "remove": (
        "remove joins the two neighbours of the id, in both directions. Out of either end, the "
        "head or the tail moves. All others keep their order."
    ),
}
COUNT = "The length is the number of queued ids: every accepted call changes it by one."
IS_IN = "An id is in the queue exactly while it is queued; one that does not exist never is."
COST = (
    "Every call takes the same few steps, however long the queue is. So many steps mean a search "
    "through the queue, or a shift of all that stands behind. An id must know its two neighbours."
)


def explain(failure: Failure) -> str:
    """The law of the queue that was broken."""
    operation = failure.operation
    if operation.how == "cost":
        return COST
    if isinstance(failure.expected, Raises):
        return REFUSE[operation.method]
    if operation.how == "in":
        return IS_IN
    if failure.fault and operation.method:
        return LAWS[operation.method]
    refused, method = _last_change(failure.case, failure.number)
    law = REFUSED if refused else LAWS[method]
    return f"{COUNT} {law}" if operation.how == "len" else law


def _last_change(case: Case, number: int) -> tuple[bool, str]:
    """The last call before an operation that changes the queue; whether it had to be refused."""
    for before in range(number - 1, 0, -1):
        operation = case.operations[before]
        if operation.how == "call" and operation.method in CHANGES:
            expected = replay(case, PlainQueue, before + 1)[0]
            return isinstance(expected[-1], Raises), operation.method
    return False, ""


def picture(case: Case, number: int) -> str:
    """The queue before an operation, as it should be."""
    queue = replay(case, PlainQueue, number)[1]
    return "" if queue is None else "queue: " + show_ids(list(queue))


def show_ids(ids: list[int]) -> str:
    """Ids from head to tail, the middle of a long queue left out."""
    if not ids:
        return "empty"
    shown = list(map(str, ids if len(ids) <= 16 else [*ids[:6], "…", *ids[-3:]]))
    return f"head {' '.join(shown)} tail"


CHECK = Check(visible, hidden, _oracle, explain=explain, picture=picture)
