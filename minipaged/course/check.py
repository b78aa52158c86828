"""check("00.1", blocks_needed): an exercise checked inside the notebook, in one process.

The same scripts and the same oracle grade it later, there with hidden cases and the learner's code
in a process of its own. Here everything runs side by side: quick, honest with an honest learner.
"""

from __future__ import annotations

import sys
from typing import Any

from minipaged.course import selfcontained, shipped
from minipaged.course.catalog import NUM_HINTS, Exercise, catalog
from minipaged.course.checks.base import Check, check_of
from minipaged.course.outcome import outcome
from minipaged.course.script import is_ours, run
from minipaged.course.submission import SubmissionError


class CheckFailed(AssertionError):
    """A check did not pass; what was printed above says why."""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows instead of a traceback, which would lead through our code."""
        return [f"CheckFailed: {self}"]


def check(exercise_id: str, subject: Any, *, hint: int = 0) -> None:
    """Check what the learner defined and print a table; CheckFailed unless every case passes.

    What would be missed when the cell is graded alone is noted; it does not fail here.

    exercise_id: such as "00.1". subject: the function or class itself, not called.
    hint: 1, 2 or 3 prints that hint as well.
    ValueError or TypeError if it was called wrongly. Takes milliseconds; loads torch only for
    exercises on tensors.
    """
    exercise = catalog().exercise(exercise_id)
    if type(hint) is not int or not 0 <= hint <= NUM_HINTS:
        raise ValueError(f"hint is {hint!r}: give 1, 2 or {NUM_HINTS}, or leave it out")
    _require_own(exercise, subject)
    the_check = check_of(exercise)
    seen = [run(case.operations, subject) for case in the_check.visible()]
    came = outcome(exercise, the_check, seen, hint=hint, notes=_notes(exercise, the_check, subject))
    print("\n".join(came.lines))
    if not came.passed:
        raise CheckFailed(
            f"{exercise.id} {exercise.name}: {came.num_failed} of {came.num_cases} checks failed"
        )


def _notes(exercise: Exercise, the_check: Check, subject: Any) -> list[str]:
    """What will be missed or refused at grading, where the learner's cell stands alone."""
    source = selfcontained.cell_of(subject)
    if not source:
        return []
    try:
        given = [text for _, text in shipped.course().given(exercise)]
    except (SubmissionError, OSError):  # a damaged installation is told of where it matters
        return []
    elsewhere = getattr(sys.modules.get("__main__"), "__dict__", {})
    elsewhere = {*elsewhere, *getattr(subject, "__globals__", {})}
    return selfcontained.notes(source, tensors=the_check.tensors, given=given, elsewhere=elsewhere)


def _require_own(exercise: Exercise, subject: Any) -> None:
    """Refuse what cannot be the learner's own work."""
    call = f'check("{exercise.id}", {exercise.name})'
    if not callable(subject):
        raise TypeError(
            f"{call} wants {exercise.name} itself, but was given {type(subject).__name__} "
            f"{subject!r:.40}: leave out the parentheses behind {exercise.name}"
        )
    if is_ours(subject):
        raise TypeError(
            f"{call} was given minipaged's own {subject.__module__}, or something derived from "
            "it, not yours: define it yourself"
        )
