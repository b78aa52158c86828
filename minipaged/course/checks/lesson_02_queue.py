"""02.1 FreeQueue(num_blocks): ids in order, and every operation takes the same few steps.

The oracle runs each script on the plain, slow queue of fixtures.py. A script ends with `cost`
operations on a long queue: whoever searches, or copies all ids, is found by the count, not by a
clock. How the queue is built is nobody's business: links in lists, nodes or an ordered dict all
pass. What moves ids in their place without a search (`del ids[k]`, `pop(0)`) is not seen (cost.py),
and neither is work that is put off until a later call and then done for all that came before.
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


# name, story, ids, steps: "append3" appends 3, "in3" asks whether it is queued, "order" lists all
VISIBLE = (
    ("a fresh queue", "All four ids are free, in ascending order.", 4, "len in3"),
    ("pop the head", "Two ids are handed out.", 4, "pop order pop order len in0"),
    (
        "back in line",
        "Of two ids that were handed out, one comes back to the tail and one to the head.",
        *(4, "pop pop append0 order prepend1 order len in0"),
    ),
    (
        "out of the middle",
        "Somebody wants a certain id that stands between two others, then its neighbour.",
        *(6, "remove2 order len in2 remove3 order remove1 order append2 order"),
    ),
    (
        "out of the head",
        "The certain id happens to be the first.",
        *(4, "remove0 order pop prepend0 order"),
    ),
    (
        "out of the tail",
        "The certain id happens to be the last; then another one joins the queue.",
        *(4, "remove3 order pop append0 order len"),
    ),
    (
        "empty, then in at the head",
        "The pool runs dry, asks once more, and gets a block back at the head.",
        *(2, "pop pop len pop order prepend1 order append0 order len"),
    ),
    (
        "empty, then in at the tail",
        "One block in all: it goes out, comes back, is taken out by its id, comes back.",
        *(1, "pop append0 order remove0 len append0 order pop"),
    ),
    (
        "queued twice",
        "An id that stands in the queue is added again, at either end.",
        *(3, "append1 order len prepend2 order len"),
    ),
    (
        "not in the queue",
        "An id that was handed out is to be removed, and ids that do not exist.",
        *(3, "pop remove0 remove3 remove-1 in-1 in3 order len"),
    ),
)


def visible() -> list[Case]:
    """Each rule once, each end of the queue once, and a long queue whose steps are counted."""
    return [*(_case(*row) for row in VISIBLE), costs(LONG)]


def hidden(seed: int) -> list[Case]:
    """A random script for each length from 1 to 7, 3 at both ends of a queue that was emptied, and
    2 long queues of other lengths."""
    rng = random.Random(f"02.1/{seed}")
    scripts = [_random_case(rng, num_blocks) for num_blocks in range(1, 8)]
    scripts += [_emptied(rng) for _ in range(3)]
    return scripts + [costs(rng.randrange(LONG // 2, LONG)) for _ in range(2)]


def _emptied(rng: random.Random) -> Case:
    """All ids are handed out, three come back, and of those the middle and the last one leave."""
    num_blocks = rng.randrange(3, 8)
    first, middle, last = rng.sample(range(num_blocks), 3)
    calls = [*["pop"] * num_blocks, f"prepend{first}", f"append{middle}", f"append{last}"]
    calls += [f"remove{middle}", f"remove{last}", f"append{middle}", "pop", "pop"]
    calls += [f"append{last}", f"prepend{first}", "pop", "pop"]
    steps = " order len ".join([*calls, ""])
    return _case("hidden", "A queue of another length.", num_blocks, steps)


def _random_case(rng: random.Random, num_blocks: int) -> Case:
    steps = []
    for _ in range(20):
        method = rng.choice(("pop", "append", "prepend", "remove", "remove"))
        inside = rng.randrange(num_blocks)
        anywhere = rng.randrange(-1, num_blocks + 1)
        block_id = {"pop": "", "remove": anywhere}.get(method, inside)
        steps.append(f"{method}{block_id} order len in{rng.randrange(-1, num_blocks + 1)}")
    return _case("hidden", "A queue of another length.", num_blocks, " ".join(steps))


def costs(num_blocks: int) -> Case:
    """Steps counted: near the middle, where a search is long from either end.

    Every operation asks for three calls, of which the cheapest counts, and the calls before it
    leave their ids queued, or out of the queue, as they are needed.
    """
    near = [num_blocks // 2 + by for by in (0, 3, -3)]
    ids, behind = [[i] for i in near], [[i + 1] for i in near]
    nothing: list[list[int]] = [[], [], []]
    calls = [("remove", ids), ("__contains__", behind), ("append", ids), ("pop_head", nothing)]
    calls += [("remove", behind), ("prepend", behind), ("__len__", nothing)]
    counted = [Operation((args,), "queue", method, how="cost") for method, args in calls]
    story = "A long queue: each call may take a few steps, however many ids are queued."
    return Case(f"{num_blocks:,} ids", story, (Operation((num_blocks,), keep="queue"), *counted))


ORDER = Operation((), "queue", how="list")
STEPS = {
    "pop": Operation((), "queue", "pop_head"),
    "order": ORDER,
    "len": Operation((), "queue", how="len"),
    "in": Operation((), "queue", how="in"),
    **{method: Operation((), "queue", method) for method in ("append", "prepend", "remove")},
}


def _step(text: str) -> Operation:
    """A step as VISIBLE has it."""
    name = text.rstrip("-0123456789")
    number = text.removeprefix(name)
    return STEPS[name]._replace(args=(int(number),) if number else ())


def _case(name: str, story: str, num_blocks: int, steps: str) -> Case:
    made = Operation((num_blocks,), keep="queue")
    return Case(name, story, (made, ORDER, *map(_step, steps.split())))


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
    if operation.how == "cost" and not failure.fault:
        return COST
    if isinstance(failure.expected, Raises):
        return REFUSE[operation.method]
    if operation.how == "in" or operation.method == "__contains__":
        return IS_IN
    if failure.fault and operation.method:
        return LAWS.get(operation.method, COUNT)
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
