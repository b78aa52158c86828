"""The checks of the `answers` exercises: a dict of answers to questions, a case a letter.

The learner's function takes nothing and returns {"a": …, "b": …}. What is right is never shown, so
a wrong answer is told by what it is the answer to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from minipaged.course import plain
from minipaged.course.checks.base import Check, Close, Failure
from minipaged.course.script import Case, Operation

NUMBERS = (int, float)
HUGE = 1e300  # beyond it a whole number need not fit into a float
NOT_INTS = "The numbers in it are right. Give them as ints, without a decimal point."


class Mistake(NamedTuple):
    """A wrong answer, what is behind it in a sentence or two, and for a number how far from it an
    answer still counts as the same."""

    answer: Any
    says: str
    near: float = 0.0


class Question(NamedTuple):
    """letter: the key of the answer. about: a few words. story: the question in short.

    answer: a number, text or list. mistakes: most telling first. rule: what to remember, said of
    every wrong answer. tolerance: how far from a number is still right.
    """

    letter: str
    about: str
    story: str
    answer: Any
    mistakes: tuple[Mistake, ...]
    rule: str = ""
    tolerance: float = 0.0

    @property
    def expected(self) -> Any:
        """What the oracle expects: a number may be an int or a float."""
        is_number = type(self.answer) in NUMBERS
        return Close(self.answer, 0.0, self.tolerance) if is_number else self.answer


def answers_check(questions: Sequence[Question]) -> Check:
    """The check of a function that answers these questions; there is nothing to hide."""
    asked = {question.letter: question for question in questions}
    form = f"answers() takes nothing and returns a dict with the keys {min(asked)} to {max(asked)}."

    def explain(failure: Failure) -> str:
        if failure.operation.keep or failure.fault:
            return form
        question = asked[failure.operation.args[0]]
        says = next((m.says for m in question.mistakes if _is_same(m, failure.got)), "")
        if not says and _are_right_floats(question.answer, failure.got):
            return NOT_INTS
        return " ".join(filter(None, (says, question.rule)))

    return Check(
        lambda: [_case(question) for question in questions],
        lambda seed: [],
        lambda case: [asked[o.args[0]].expected for o in case.operations if not o.keep],
        explain=explain,
        secret=True,
    )


def _case(question: Question) -> Case:
    """Fetch the answers, then look at one."""
    look = Operation((question.letter,), "answers", how="item")
    name = f"{question.letter}: {question.about}"
    return Case(name, question.story, (Operation(keep="answers"), look))


def _is_same(mistake: Mistake, got: Any) -> bool:
    """Whether an answer, whatever it may be, is this wrong one."""
    if type(mistake.answer) not in NUMBERS:
        return plain.same(mistake.answer, got)
    is_number = type(got) in NUMBERS and abs(got) < HUGE
    return is_number and abs(got - mistake.answer) <= mistake.near


def _are_right_floats(answer: Any, got: Any) -> bool:
    """Whether a list is right but for an element such as 30.0 in place of 30."""
    return type(answer) is type(got) is list and answer == got
