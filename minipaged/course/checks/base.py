"""What a check consists of: scripts, and an oracle that knows what should come of them.

A module in this folder names its checks in CHECKS, one for each of its exercises. Modules of
lessons without tensors import neither torch nor numpy.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from minipaged.course.catalog import Exercise
from minipaged.course.expect import AtMost, Close, Raises
from minipaged.course.script import Case, Operation

__all__ = ["AtMost", "Check", "Close", "Failure", "Raises", "Row", "check_of"]


class Row(NamedTuple):
    """One operation that answered with a value of the right type: what was asked and said."""

    args: tuple[Any, ...]
    expected: Any
    got: Any


class Failure(NamedTuple):
    """The first operation of a case that went wrong.

    number: its place in case.operations. got: the decoded answer, None if there was a fault.
    fault: the class name of the exception, "" if there was none. Both may be anything that a
    hostile process sends: any plain value, also for an operation that is kept, and any name.
    """

    case: Case
    number: int
    expected: Any
    got: Any
    fault: str

    @property
    def operation(self) -> Operation:
        """The operation itself."""
        return self.case.operations[self.number]


@dataclass(frozen=True)
class Check:
    """The check of one exercise.

    visible: the cases that the learner sees. hidden: further cases made from a seed, as many for
        every seed; run at grading.
    oracle: for a case, what is expected of each operation that is not kept, in order: a plain
        value, or one of expect.py. Checks of classes run the script on a plain model of their own.
    diagnose: from all rows of a failed check, the misconception behind them in a sentence or two
        ("" if none is recognised). It is shown to learners after grading too, so it must not
        quote a case.
    explain: from the first failure of a script, the rule that was broken, in a sentence or two
        ("" if none fits); like diagnose, without a word of the case.
    picture: for a visible case and the number of an operation, the state before it as it should
        be, as a few lines of text; "" if there is nothing to draw.
    tensors: the scripts use tensors, so the learner's process loads torch.
    secret: what is expected is never shown: the answer to a question is the learner's to find.

    diagnose, explain and picture must not raise, whatever came: an answer that they are given is
    anything that plain.decode can give back.
    """

    visible: Callable[[], list[Case]]
    hidden: Callable[[int], list[Case]]
    oracle: Callable[[Case], list[Any]]
    diagnose: Callable[[Sequence[Row]], str] = lambda rows: ""
    explain: Callable[[Failure], str] = lambda failure: ""
    picture: Callable[[Case, int], str] = lambda case, number: ""
    tensors: bool = False
    secret: bool = False

    @property
    def num_hidden(self) -> int:
        """How many more cases run at grading."""
        return len(self.hidden(0))


def check_of(exercise: Exercise) -> Check:
    """The check of an exercise; LookupError if its module has none for it."""
    module = importlib.import_module(f"minipaged.course.checks.{exercise.check}")
    try:
        return module.CHECKS[exercise.id]
    except KeyError:
        raise LookupError(
            f"{exercise.check}.py has no check for {exercise.id}: add it to CHECKS there"
        ) from None
