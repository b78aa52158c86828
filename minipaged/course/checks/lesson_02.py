"""Lesson 02. 02.1 FreeQueue, 02.2 BlockPool, and 02.3 answers(): the questions about both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from minipaged.course.checks import lesson_02_pool, lesson_02_queue
from minipaged.course.checks.base import Check, Close, Failure, Row
from minipaged.course.expect import matches
from minipaged.course.script import Case, Operation

LENGTH = 8192  # ids in the queue of questions b and c


class Question(NamedTuple):
    """about: a few words. story: the question in short. answer: what is right.
    mistakes: a wrong answer and what is behind it. rule: what to remember."""

    about: str
    story: str
    answer: Any
    mistakes: tuple[tuple[Any, str], ...]
    rule: str


NO_SEARCH = "What does Python have to do with the other elements, to find this one or to close up?"
QUESTIONS = {
    "a": Question(
        "which blocks come next",
        "A is [0, 1], B is [2], C is [3, 4, 5], the queue 6 7. B finishes; then allocate(2).",
        [2, 6],
        (
            ([6, 7], "This hands out the freed block last. A block without a hash goes first."),
            ([6, 2], "The right two, but the freed block stands before the untouched ones."),
        ),
        "A freed block without a hash is the next to be handed out.",
    ),
    "b": Question(
        "list.pop(0)",
        "How many elements does pop(0) move in a list of 8,192?",
        LENGTH - 1,
        (
            (0, f"A list has no gap at its front. {NO_SEARCH}"),
            (1, f"One element is taken, but that is not what is asked. {NO_SEARCH}"),
            (LENGTH, "Nearly: the element that is taken out does not move up."),
            (
                LENGTH // 2,
                "Half the list moves on average from a place anywhere, not from the front.",
            ),
        ),
        "All elements behind a gap in a list move up by one place.",
    ),
    "c": Question(
        "list.remove(x)",
        "Elements compared or moved by remove(x) in a list of 8,192, together, on average.",
        LENGTH,
        (
            (LENGTH // 2, "This is the search alone, or the shift alone. Add both."),
            (LENGTH - 1, "Nearly: the search compares x itself as well, to know that it is there."),
            (1, f"The element is not found at once. {NO_SEARCH}"),
        ),
        "What stands before x is compared, what stands behind it moves: no element is spared.",
    ),
    "d": Question(
        "a refcount",
        "Block 5 is in three tables. One of them is forked; the two others finish.",
        2,
        (
            (1, "Was the fork counted? A table that takes the block in is a holder more."),
            (4, "Holders that finish have to be taken off."),
            (3, "Go through the three events one by one: two of them take a holder off."),
            (0, "Nobody frees the whole block: each holder takes off its own reference only."),
        ),
        "refcount is the number of tables that hold the block at this moment.",
    ),
    "e": Question(
        "blocks left free",
        "A pool of 12. Two tables of 5 blocks each, 3 of which they share.",
        5,
        (
            (
                2,
                "The shared blocks are counted twice. They stand in two tables and in memory once.",
            ),
            (7, "This is the number of blocks that are held. How many are left?"),
            (8, "Blocks that only one of the two holds are in use as well."),
        ),
        "A block is held once, in however many tables it stands.",
    ),
    "f": Question(
        "a second free",
        "What must a pool do when somebody frees a block without a holder?",
        "raise",
        (
            ("ignore", "Then the fault that led to it goes on unseen until outputs are wrong."),
            ("queue", "Then the block is on the queue twice, and two requests will write into it."),
            (
                "warn",
                "Whoever called it believes that it still owned the block; it must not go on.",
            ),
        ),
        "A double free raises an error and changes nothing.",
    ),
}


def _visible() -> list[Case]:
    return [_case(letter, question) for letter, question in QUESTIONS.items()]


def _case(letter: str, question: Question) -> Case:
    operations = (Operation(keep="answers"), Operation((letter,), "answers", how="item"))
    return Case(f"{letter}: {question.about}", question.story, operations)


def _oracle(case: Case) -> list[Any]:
    answer = QUESTIONS[case.operations[1].args[0]].answer
    return [Close(answer, 0.0, 0.0) if type(answer) is int else answer]


def diagnose(rows: Sequence[Row]) -> str:
    """What is behind the first wrong answer, if it is a known one."""
    wrong = next((row for row in rows if not matches(row.expected, row.got)), None)
    if wrong is None:
        return ""
    return next((says for got, says in QUESTIONS[wrong.args[0]].mistakes if got == wrong.got), "")


def explain(failure: Failure) -> str:
    """The rule that the question is about."""
    if failure.number == 0:
        return "answers() takes nothing and returns a dict with the keys a to f."
    return QUESTIONS[failure.operation.args[0]].rule


CHECKS = {
    "02.1": lesson_02_queue.CHECK,
    "02.2": lesson_02_pool.CHECK,
    "02.3": Check(_visible, lambda seed: [], _oracle, diagnose, explain, secret=True),
}
