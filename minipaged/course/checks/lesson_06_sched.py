"""06.2 FCFSScheduler: days at a desk that asks for a plan, looks at it, and hands it back.

The desk is fixture_sched.SchedulerDesk; the oracle plays the same day on PlainDesk, numbers alone.
"""

from __future__ import annotations

import random
from typing import Any

from minipaged.course.checks.base import Check
from minipaged.course.checks.lesson_06_ideas import explain, picture, play
from minipaged.course.plain import Kept
from minipaged.course.script import Case, Operation

STEP = Operation((), "desk", "step")
QUEUES = Operation((), "desk", "queues")
FAIL = Operation((), "desk", "fail")


def visible() -> list[Case]:
    """Going on and entering, the limits one by one, then memory, then ends."""
    return [*_joining(), *_limits(), *_memory(), *_ends()]


def _joining() -> list[Case]:
    """Room for all: who computes what."""
    return [
        _case(
            "one request",
            "A prompt of 5 tokens, 3 outputs. The prompt is computed whole and gives the first.",
            *(_desk(8), _add("A", 5, 3), _steps(3), _outputs("A")),
        ),
        _case(
            "two at once",
            "Both enter in the first step.",
            *(_desk(8), _add("A", 5, 2), _add("B", 3, 4), _steps(4), _outputs("A", "B")),
        ),
        _case(
            "joining",
            "A runs; B comes two steps later and joins at once. Nobody waits for the other's end.",
            *(_desk(8), _add("A", 4, 6), _steps(2), _add("B", 6, 3), _steps(4)),
            _outputs("A", "B"),
        ),
        _case(
            "a place is refilled",
            "Two places. B ends early, and C enters in the very next step, while A still runs.",
            *(_desk(9, seats=2), _add("A", 3, 6), _add("B", 3, 2), _add("C", 3, 3), _steps(6)),
        ),
        _case(
            "one output",
            "The step that computes the prompt gives the only output.",
            *(_desk(4), _add("A", 4, 1), _steps(1), _outputs("A")),
        ),
    ]


def _limits() -> list[Case]:
    """Places and budget."""
    return [
        _case(
            "longer than the budget",
            "Budget 16, and a prompt of 20. It enters once nobody else is in the plan, alone.",
            *(_desk(12), _add("A", 4, 3), _add("B", 20, 3), _add("C", 2, 2), _steps(7)),
        ),
        _case(
            "at once if nobody runs",
            "The same prompt of 20 comes first: it need not wait, but the others must.",
            *(_desk(12), _add("B", 20, 2), _add("C", 2, 2), _steps(3)),
        ),
        _case(
            "those that run use the budget too",
            "Budget 16. A and B run when C comes with 15 tokens, and D with 3. Nobody overtakes.",
            *(_desk(16), _add("A", 2, 4), _add("B", 2, 4), _steps(1)),
            *(_add("C", 15, 2), _add("D", 3, 2), _steps(5)),
        ),
        _case(
            "the budget",
            "Budget 16. Prompts of 6, 10 and 1: two fit exactly, the third has to wait a step.",
            *(_desk(12), _add("A", 6, 4), _add("B", 10, 4), _add("C", 1, 4), _steps(3)),
        ),
    ]


def _memory() -> list[Case]:
    """Blocks run out: nobody enters, then somebody has to go."""
    return [
        _case(
            "no block for the next",
            "6 blocks of 4. A and B take 5 of them; C needs 2 and D 1. C waits, and D behind it.",
            *(
                _desk(6, budget=32),
                _add("A", 12, 3),
                _add("B", 6, 3),
                _add("C", 5, 2),
                _add("D", 2, 2),
            ),
            _steps(5),
        ),
        _case(
            "the last admitted goes",
            "6 blocks of 4. A, B and C hold two each. B's are full, it needs a third: C goes.",
            *(_desk(6, budget=32), _add("A", 6, 5), _add("B", 8, 3), _add("C", 8, 3), _steps(8)),
            _outputs("A", "B", "C"),
        ),
        _case(
            "it goes itself",
            "5 blocks of 4. B was admitted last and is the one that finds no block.",
            *(_desk(5), _add("A", 6, 10), _add("B", 7, 9), _steps(14), _outputs("A", "B")),
        ),
        _case(
            "one after the other",
            "4 blocks of 4. A takes the last free one, so C goes for B. Four steps later B goes "
            "for A. They come back in their old order.",
            *(_desk(4), _add("A", 4, 10), _add("B", 4, 9), _add("C", 4, 5), _steps(18)),
            _outputs("A", "B", "C"),
        ),
        _case(
            "it comes back with its outputs",
            "4 blocks of 4. B is preempted after 4 outputs: it computes 5 + 4 tokens on its "
            "return, and the next output is its fifth.",
            *(_desk(4), _add("A", 5, 8), _add("B", 5, 6), _steps(10), _outputs("A", "B")),
        ),
        _case(
            "alone in a small pool",
            "4 blocks of 4, a prompt of 12, 8 outputs asked for. The pool has room for 5 outputs.",
            *(_desk(4), _add("A", 12, 8), _steps(5), _outputs("A")),
        ),
    ]


def _ends() -> list[Case]:
    """Stop tokens, ends by the user, a step that fails."""
    return [
        _case(
            "a stop token",
            "A's third output is the stop token. B's second is, too, but B must write more than 3.",
            *(_desk(8), _add("A", 4, 9, [3]), _add("B", 4, 9, [2, 5], 3), _steps(5)),
            _outputs("A", "B"),
        ),
        _case(
            "exactly min_tokens",
            "min_tokens 2: a stop token as the second output does not end A, as the third it does. "
            "B's last output is a stop token.",
            *(_desk(8), _add("A", 4, 9, [2, 3], 2), _add("B", 4, 4, [4]), _steps(4)),
            _outputs("A", "B"),
        ),
        _case(
            "given up",
            "A runs and C waits when their users go away. B never notices.",
            *(_desk(8, seats=2), _add("A", 4, 9), _add("B", 4, 5), _add("C", 4, 5), _steps(2)),
            *(_abort("C"), _abort("A"), _add("D", 3, 2), _steps(3), _outputs("A", "B", "D")),
        ),
        _case(
            "a step that fails",
            "The second plan is not carried out. Everybody waits again, in the same order.",
            *(_desk(8), _add("A", 4, 3), _add("B", 5, 3), _steps(1), [FAIL, QUEUES], _steps(3)),
            _outputs("A", "B"),
        ),
    ]


def hidden(seed: int) -> list[Case]:
    """10 random days: much to do, little memory, small budgets; then 2 in which a block is missing
    for the second of three, and for the first."""
    rng = random.Random(f"06.2/{seed}")
    size = rng.randrange(3, 7)
    days = [_random_case(rng, number) for number in range(10)]
    return days + [_three(size, 2 * size - gap) for gap in (2, 0)]


def _three(size: int, first: int) -> Case:
    """Three requests fill six blocks; the first has room for two more tokens, or none."""
    parts = [_add("A", first, 7), _add("B", 2 * size, 5), _add("C", 2 * size, 4)]
    return _case("hidden", "Three fill the pool.", _desk(6, size, 3, 50), *parts, _steps(14))


def _random_case(rng: random.Random, number: int) -> Case:
    size = rng.randrange(2, 5)
    blocks = rng.randrange(7, 12) if number % 2 else rng.randrange(20, 30)
    desk = _desk(blocks, size, rng.randrange(2, 5), rng.randrange(10, 20))
    parts = [desk]
    longest = blocks * size
    for k in range(9):
        prompt = rng.randrange(1, min(24, longest - 2))
        stop = [rng.randrange(1, 9), 10] if rng.random() < 0.4 else []
        if not k and number % 2:  # the pool ends it, not its max_tokens
            parts.append(_add("A", longest - 3, 12))
            continue
        most = rng.randrange(1, 12)
        least = min(most, rng.randrange(4))
        if k in (2, 5):  # a stop token at min_tokens, and one behind it
            most, least, stop = 6, 2, [2, 3]
        if k == 4:
            stop = [most]
        parts.append(_add("ABCDEFGHI"[k], prompt, most, stop, least))
        parts.append(_steps(rng.choice((0, 0, 1, 3))))
    parts += [_abort(rng.choice("CDEF")), [FAIL, QUEUES] if rng.random() < 0.5 else []]
    parts += [_steps(24), _outputs(*"ABCDEFGHI")]
    return _case("hidden", "Another day.", *parts)


def _case(name: str, story: str, *parts: list[Operation]) -> Case:
    return Case(name, story, tuple(operation for part in parts for operation in part))


def _desk(blocks: int, size: int = 4, seats: int = 4, budget: int = 16) -> list[Operation]:
    args = (Kept(""), blocks, size, seats, budget, True)
    return [Operation(args, "SchedulerDesk", keep="desk")]


def _add(
    name: str, prompt: int, most: int, stop_at: list[int] | None = None, min_tokens: int = 0
) -> list[Operation]:
    more = (stop_at, min_tokens) if stop_at else ()
    return [Operation((name, prompt, most, *more), "desk", "add")]


def _abort(name: str) -> list[Operation]:
    return [Operation((name,), "desk", "abort"), QUEUES]


def _steps(count: int) -> list[Operation]:
    return [STEP, QUEUES] * count


def _outputs(*names: str) -> list[Operation]:
    looks = ("outputs", "reason")
    return [Operation((name,), "desk", look) for name in names for look in looks]


def _oracle(case: Case) -> list[Any]:
    return play(case.operations)


CHECK = Check(visible, hidden, _oracle, explain=explain, picture=picture)
