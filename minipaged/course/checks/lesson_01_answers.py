"""Exercise 01.4: questions, their answers, and what a wrong answer is the answer to."""

from __future__ import annotations

from typing import Any, NamedTuple

from minipaged.course.checks.base import Check, Close, Failure
from minipaged.course.script import Case, Operation


class Question(NamedTuple):
    """name and story: what is asked. wrong: value, how near counts as that value, sentence."""

    name: str
    story: str
    answer: Any
    wrong: tuple[tuple[float, float, str], ...]


FRACTION = "Give per cent, not a fraction."
QUESTIONS: dict[str, Question] = {
    "a": Question(
        "16 reservations",
        "GiB reserved for 16 requests of 8,192 tokens by a model with 512 KiB a token.",
        Close(64),
        (
            (4, 0, "That is one request. There are sixteen."),
            (32, 0, "Half of it: keys and values are both kept."),
            (68.7, 0.1, "That is in units of 10^9 bytes. One GiB is 2^30."),
            (64 * 2**30, 0, "That is in bytes. Divide by 2^30."),
            (65536, 0, "That is in MiB. A GiB has 1,024 of them."),
        ),
    ),
    "b": Question(
        "over time",
        "Per cent of the reserved slots that hold a token, averaged over time.",
        Close(7.41, 0.0, 0.06),
        (
            (
                6.1,
                0.05,
                "That gives every request the same weight. A long one is there for longer, so it "
                "has to count for more.",
            ),
            (
                12.2,
                0.05,
                "That is the share at the end of a request. While it grows it uses half of that "
                "on average.",
            ),
            (
                14.8,
                0.05,
                "The weight is right. But a request holds its final length only at its end, and "
                "half of it on average.",
            ),
            (0.0741, 0.0006, FRACTION),
        ),
    ),
    "c": Question(
        "a mean of 400",
        "Per cent used at the end, 400 of 4,096 slots, to one decimal.",
        Close(9.766, 0.0, 0.04),
        (
            (9.7, 0.01, "The second decimal is above five: round up, do not cut off."),
            (0.098, 0.001, FRACTION),
            (90.2, 0.1, "That is the share that is wasted."),
        ),
    ),
    "d": Question(
        "sessions of a 13B",
        "Whole sessions of 2,048 tokens in 54 · 10^9 bytes, 40 layers, 40 KV heads.",
        Close(32, 0.0, 0.0),
        (
            (160, 0, "That is with 8 KV heads. Here each of the 40 heads keeps its own."),
            (161, 0, "That is with 8 KV heads, and rounded up. This model has 40."),
            (168, 0, "That is with 0.32 GB a session, which fits 8 KV heads. This model has 40."),
            (33, 0, "The last of them does not fit whole: round down."),
            (34, 0, "The memory is given in units of 10^9 bytes, not in GiB."),
            (64, 0, "Twice too many: keys and values are both kept."),
        ),
    ),
    "e": Question(
        "empty at the end",
        "Mean number of empty slots in the last block of 128, all fillings equally likely.",
        Close(63.5, 0.0, 1e-6),
        (
            (
                64,
                0,
                "Nearly. The last block holds at least one token, or it would not be there: the "
                "number of empty slots goes from none to all but one.",
            ),
            (63, 0, "Nearly. The mean lies between two whole numbers here: do not round."),
            (64.5, 0, "That is the mean number of filled slots in it."),
            (127, 0, "That is the most there can be."),
        ),
    ),
    "f": Question(
        "from 42 to 280",
        "How many times as many, to two decimals.",
        Close(6.667, 0.0, 0.0075),
        (
            (6.6, 0.01, "The decimals behind it were cut off. Work it out to three, then round."),
            (6.7, 0.001, "To two decimals, please."),
            (5.67, 0.01, "That is how many times more were added. Asked for is the quotient."),
            (0.15, 0.001, "Upside down: divide the later number by the earlier one."),
        ),
    ),
}


def visible() -> list[Case]:
    """A case a letter: fetch the answers, then look at one."""
    return [
        Case(
            f"{letter}  {question.name}",
            question.story,
            (Operation(keep="answers"), Operation((letter,), "answers", how="item")),
        )
        for letter, question in QUESTIONS.items()
    ]


def explain(failure: Failure) -> str:
    """What a wrong answer is the answer to."""
    if failure.fault or type(failure.got) not in (int, float):
        return ""
    wrong = QUESTIONS[failure.operation.args[0]].wrong
    return next((said for value, by, said in wrong if abs(failure.got - value) <= by), "")


ANSWERS = Check(
    visible,
    lambda seed: [],
    lambda case: [QUESTIONS[o.args[0]].answer for o in case.operations if not o.keep],
    explain=explain,
    secret=True,
)
