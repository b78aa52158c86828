"""The result of one exercise of a submission: points, and a reason for what was not given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from minipaged.course.catalog import Exercise
from minipaged.course.checks.base import Check
from minipaged.course.faults import MISSING, ONLY_THIS_CELL
from minipaged.course.script import Case, Observation
from minipaged.course.verdict import Verdict, diagnosis, judge


@dataclass(frozen=True, slots=True)
class Result:
    """One exercise. status: "passed", "failed", "unsolved", "copied" or why it came to no verdict.
    reason: what is wrong, for the learner; "" if passed. num_passed of num_cases checks passed."""

    exercise_id: str
    name: str
    points: int
    max_points: int
    status: str
    reason: str
    num_passed: int
    num_cases: int

    @property
    def passed(self) -> bool:
        """All its checks passed (an exercise worth 0 points can pass, too)."""
        return self.status == "passed"


def judged(
    exercise: Exercise,
    check: Check,
    cases: Sequence[Case],
    seen: Sequence[Sequence[Observation]],
    num_visible: int,
) -> Result:
    """The result of what was observed of all cases; the first num_visible of them are visible."""
    verdicts = judge(check, cases, seen, exercise.name)
    failed = [number for number, verdict in enumerate(verdicts) if not verdict.passed]
    if not failed:
        points = exercise.points
        status, reason = "passed", ""
    else:
        points = 0
        first = verdicts[failed[0]]
        status = "unsolved" if first.problem and first.problem.kind == "unsolved" else "failed"
        reason = _reason(first, failed[0] < num_visible, diagnosis(check, cases, seen))
    num_passed = len(cases) - len(failed)
    return Result(
        exercise.id, exercise.name, points, exercise.points, status, reason, num_passed, len(cases)
    )


def _reason(verdict: Verdict, is_visible: bool, said: str) -> str:
    """The first failure in words; a hidden case is not quoted."""
    problem = verdict.problem
    assert problem is not None
    if problem.kind == "unsolved":
        return problem.reason
    what = problem.reason if is_visible else problem.discreet_reason
    why = " ".join(filter(None, (what or said, problem.rule))) or "Another value was expected."
    if problem.kind == "fault" and problem.got in MISSING:
        why += f" {ONLY_THIS_CELL}"
    if not is_visible:
        return f"A hidden check fails. {why}"
    return f"{problem.call} gives {problem.got}, expected {problem.expected}. {why}"


def nothing(exercise: Exercise, status: str, reason: str, num_cases: int = 0) -> Result:
    """No points, for this reason."""
    return Result(exercise.id, exercise.name, 0, exercise.points, status, reason, 0, num_cases)


def say_no_verdict(error: Exception) -> str:
    """Why there is no verdict if the check itself fails."""
    return (
        "The check cannot deal with what this cell answered, so nothing is passed "
        f"({type(error).__name__} while judging). If the cell looks right, the check is at fault: "
        "grade this exercise by hand, and report it."
    )
