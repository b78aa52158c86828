"""check("00.1", blocks_needed): an exercise checked inside the notebook, in one process.

The same scripts and the same oracle grade it later, there with hidden cases and the learner's code
in a process of its own. Here everything runs side by side: quick, honest with an honest learner.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from minipaged.course.catalog import NUM_HINTS, Exercise, catalog
from minipaged.course.checks.base import check_of
from minipaged.course.script import Observation, is_ours, run
from minipaged.course.verdict import Problem, Verdict, diagnosis, judge

WIDTH = 88


class CheckFailed(AssertionError):
    """A check did not pass; what was printed above says why."""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows instead of a traceback, which would lead through our code."""
        return [f"CheckFailed: {self}"]


def check(exercise_id: str, subject: Any, *, hint: int = 0) -> None:
    """Check what the learner defined and print a table; CheckFailed unless every case passes.

    exercise_id: such as "00.1". subject: the function or class itself, not called.
    hint: 1, 2 or 3 prints that hint as well.
    ValueError or TypeError if it was called wrongly. Takes milliseconds; loads no torch.
    """
    exercise = catalog().exercise(exercise_id)
    if type(hint) is not int or not 0 <= hint <= NUM_HINTS:
        raise ValueError(f"hint is {hint!r}: give 1, 2 or {NUM_HINTS}, or leave it out")
    _require_own(exercise, subject)
    the_check = check_of(exercise)
    cases = the_check.visible()
    seen = [run(case.operations, subject) for case in cases]
    verdicts = judge(the_check, cases, seen, exercise.name)
    failed = [verdict for verdict in verdicts if not verdict.passed]
    print("\n".join(_table(exercise, verdicts, the_check.num_hidden)))
    if failed:
        said = diagnosis(the_check, cases, seen)
        print("\n".join(["", *_failure(failed[0], said), *_printed(seen)]))
    print("\n".join(_hint(exercise, hint, bool(failed))))
    if failed:
        raise CheckFailed(
            f"{exercise.id} {exercise.name}: {len(failed)} of {len(verdicts)} checks failed"
        )


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
            f"{call} was given minipaged's own {subject.__module__}, not yours: define it yourself"
        )


def _table(exercise: Exercise, verdicts: Sequence[Verdict], num_hidden: int) -> list[str]:
    width = max(len(verdict.case.name) for verdict in verdicts)
    lines = [f"{exercise.id}  your {exercise.name}", ""]
    for verdict in verdicts:
        lines += _wrap(f"  {_mark(verdict)}  {verdict.case.name:{width}}  ", verdict.case.story)
    passed = sum(verdict.passed for verdict in verdicts)
    lines += ["", f"{passed} of {len(verdicts)} passed. {num_hidden} more checks run at grading."]
    return lines


def _mark(verdict: Verdict) -> str:
    if verdict.problem is None:
        return "passed"
    return "open  " if verdict.problem.kind == "unsolved" else "FAILED"


def _failure(verdict: Verdict, said: str) -> list[str]:
    """The first failure: its story, the call, expected and got, and what is behind it."""
    problem = verdict.problem
    assert problem is not None
    if problem.kind == "unsolved":
        return _wrap("", problem.reason)
    lines = [f"The first failure: {verdict.case.name}", *_wrap("  story     ", verdict.case.story)]
    lines += _wrap("  call      ", problem.call)
    lines += _wrap("  expected  ", problem.expected)
    lines += _wrap("  got       ", problem.got)
    why = problem.reason or said or "Work this case out on paper, then follow it through your code."
    return [*lines, *_wrap("  why       ", why), *_step(verdict, problem)]


def _step(verdict: Verdict, problem: Problem) -> list[str]:
    count = len(verdict.case.operations)
    return [f"  step      {problem.operation + 1} of {count}"] if count > 1 else []


def _printed(seen: Sequence[Sequence[Observation]]) -> list[str]:
    """What the learner's code printed first, so that a print for debugging is not lost."""
    for observation in (one for case in seen for one in case):
        if observation.printed.strip():
            return _wrap("  printed   ", f"{observation.printed.strip()[:200]!r}")
    return []


def _hint(exercise: Exercise, hint: int, failed: bool) -> list[str]:
    if hint:
        return ["", *_wrap(f"hint {hint} of {NUM_HINTS}: ", exercise.hints[hint - 1])]
    if not failed:
        return ["All done here: on with the next cell."]
    call = f'check("{exercise.id}", {exercise.name}, hint=1)'
    return ["", f"Stuck? {call} shows the first of {NUM_HINTS} hints."]


def _wrap(label: str, text: str) -> list[str]:
    indent = " " * len(label)
    return textwrap.wrap(text, WIDTH, initial_indent=label, subsequent_indent=indent) or [label]
