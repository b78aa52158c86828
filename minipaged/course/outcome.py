"""What a learner is shown after a check: a table of the cases, and the first failure told whole.

The same words in a notebook and in the terminal; only the commands that it names differ.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from minipaged.course import plain
from minipaged.course.catalog import NUM_HINTS, Exercise
from minipaged.course.checks.base import Check
from minipaged.course.faults import MISSING, ONLY_THIS_CELL
from minipaged.course.script import Observation
from minipaged.course.verdict import Problem, Verdict, diagnosis, judge, show_call

WIDTH = 88
MAX_STEPS_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Outcome:
    """lines: to print. num_failed of num_cases cases did not pass."""

    lines: tuple[str, ...]
    num_failed: int
    num_cases: int

    @property
    def passed(self) -> bool:
        """Every case passed."""
        return self.num_failed == 0


def outcome(
    exercise: Exercise,
    check: Check,
    seen: Sequence[Sequence[Observation]],
    *,
    hint: int = 0,
    in_notebook: bool = True,
    notes: Sequence[str] = (),
    then: str = "on with the next cell",
) -> Outcome:
    """Judge what was observed of the visible cases, and say it.

    hint: 1, 2 or 3 shows that hint. in_notebook: which commands are named. notes: sentences that
    the learner needs besides. then: what comes next, once it has passed; "" if nobody can tell.
    """
    cases = check.visible()
    verdicts = judge(check, cases, seen, exercise.name)
    failed = [number for number, verdict in enumerate(verdicts) if not verdict.passed]
    lines = _table(exercise, verdicts, check.num_hidden)
    if failed:
        first = failed[0]
        said = diagnosis(check, cases, seen)
        failure = _failure(check, verdicts[first], seen[first], exercise.name, said)
        lines += ["", *failure, *_printed(seen)]
        problem = verdicts[first].problem
        is_missing = problem and problem.kind == "fault" and problem.got in MISSING
        if not in_notebook and not notes and is_missing:
            notes = [ONLY_THIS_CELL]
    for note in notes:
        lines += wrap("  note      ", note)
    if failed or hint:
        lines += _help(exercise, hint, in_notebook)
    else:
        lines += [f"All done here: {then}." if then else "All done here."]
    return Outcome(tuple(lines), len(failed), len(verdicts))


def _table(exercise: Exercise, verdicts: Sequence[Verdict], num_hidden: int) -> list[str]:
    width = max(len(verdict.case.name) for verdict in verdicts)
    lines = [f"{exercise.id}  your {exercise.name}", ""]
    for verdict in verdicts:
        lines += wrap(f"  {_mark(verdict)}  {verdict.case.name:{width}}  ", verdict.case.story)
    passed = sum(verdict.passed for verdict in verdicts)
    more = f" {num_hidden} more checks run at grading." if num_hidden else ""
    more += " open: not written yet." if any(_mark(v) == _OPEN for v in verdicts) else ""
    return [*lines, "", f"{passed} of {len(verdicts)} passed.{more}"]


_OPEN = "open  "


def _mark(verdict: Verdict) -> str:
    if verdict.problem is None:
        return "passed"
    return _OPEN if verdict.problem.kind == "unsolved" else "FAILED"


def _failure(
    check: Check, verdict: Verdict, seen: Sequence[Observation], name: str, said: str
) -> list[str]:
    """The first failure: its story, the steps up to it, expected and got, what is behind it."""
    problem = verdict.problem
    assert problem is not None
    if problem.kind == "unsolved":
        return wrap("", problem.reason)
    lines = [f"The first failure: {verdict.case.name}", *wrap("  story     ", verdict.case.story)]
    lines += _steps_before(verdict, problem, seen, name)
    lines += wrap("  expected  ", problem.expected)
    lines += wrap("  got       ", problem.got)
    lines += _picture(check, verdict, problem)
    nothing = "" if problem.rule else "Work this case out on paper, then follow it in your code."
    why = problem.reason or said or nothing
    lines += wrap("  why       ", why) if why else []
    return lines + (wrap("  rule      ", problem.rule) if problem.rule else [])


def _steps_before(
    verdict: Verdict, problem: Problem, seen: Sequence[Observation], name: str
) -> list[str]:
    """The call that went wrong; in a longer script with what went before it."""
    operations = verdict.case.operations
    if len(operations) == 1:
        return wrap("  call      ", problem.call)
    first = max(0, problem.operation - MAX_STEPS_SHOWN)
    lines = [f"            … {first} step{'s' * (first > 1)} before"] if first else []
    for number in range(first, problem.operation):
        operation, one = operations[number], seen[number]
        text = show_call(operation, name)
        if not operation.keep:
            got = one.fault.kinds[0] if one.fault else plain.show(plain.decode(one.value), 40)
            text += "" if got == "None" else f"  ->  {got}"
        lines += wrap("            ", text)
    if lines:
        lines[0] = "  so far  " + lines[0][10:]
    step = f"  step {problem.operation + 1} of {len(operations)}"
    return [*lines, step, *wrap("            ", problem.call)]


def _picture(check: Check, verdict: Verdict, problem: Problem) -> list[str]:
    text = check.picture(verdict.case, problem.operation)
    if not text:
        return []
    lines = (f"            {line}".rstrip() for line in text.split("\n"))
    return ["  before    as it should be:", *lines]


def _printed(seen: Sequence[Sequence[Observation]]) -> list[str]:
    """What the learner's code printed first, so that a print for debugging is not lost."""
    for observation in (one for case in seen for one in case):
        if observation.printed.strip():
            return wrap("  printed   ", f"{observation.printed.strip()[:200]!r}")
    return []


def _help(exercise: Exercise, hint: int, in_notebook: bool) -> list[str]:
    if hint:
        return ["", *wrap(f"hint {hint} of {NUM_HINTS}: ", exercise.hints[hint - 1])]
    call = f'check("{exercise.id}", {exercise.name}, hint=1)'
    if not in_notebook:
        call = f"`minipaged hint {exercise.id}`"
    return [
        "",
        f"Stuck? {call} shows {'the first' if in_notebook else 'one'} of {NUM_HINTS} hints.",
    ]


def wrap(label: str, text: str) -> list[str]:
    """Text behind a label, in lines of at most WIDTH, indented under itself."""
    indent = " " * len(label)
    return textwrap.wrap(text, WIDTH, initial_indent=label, subsequent_indent=indent) or [label]
