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
from minipaged.course.script import Case


class Raises(NamedTuple):
    """Expected instead of a value: an exception of this class or of one derived from it."""

    kind: str


class Row(NamedTuple):
    """One operation that answered with a value of the right type: what was asked and said."""

    args: tuple[Any, ...]
    expected: Any
    got: Any


@dataclass(frozen=True)
class Check:
    """The check of one exercise.

    visible: the cases that the learner sees. hidden: further cases made from a seed, as many for
        every seed; run at grading.
    oracle: for a case, one plain value or Raises per operation that is not kept, in order.
    diagnose: from all rows of a failed check, the misconception behind them in a sentence or two
        ("" if none is recognised). It is shown to learners after grading too, so it must not
        quote a case.
    """

    visible: Callable[[], list[Case]]
    hidden: Callable[[int], list[Case]]
    oracle: Callable[[Case], list[Any]]
    diagnose: Callable[[Sequence[Row]], str] = lambda rows: ""

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
