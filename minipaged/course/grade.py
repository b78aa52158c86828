"""Grading: points for submitted notebooks, and a reason for every point that is not given.

For each exercise of the lesson the learner's cell is taken out of the submission by its grade id,
put behind the given cells of the release notebook, and run in a process of its own (worker.py),
which carries out the visible scripts and hidden ones made from a seed. The observations come back
as JSON and are compared here. Nothing else in the submission is run or believed: a deleted, edited
or patched check cell changes nothing, and the maximum is always the release's.

What this protects against: code that fails, hangs, exits, prints, reads from the terminal, eats
memory or fills the disk through its output; faked success of every kind (a verdict is not formed
where the code runs, and silence is not success); files that are no notebook; answers that a check
cannot deal with. A cell imports modules for data and numbers only and opens no file, and a copy of
the reference or of the packaged solution is named.

What it does not: the process runs as the grader's user. The guard on imports and files is there
against the easy way, not against harm: who gets around it reaches what the user reaches, and, where
there are no namespaces (isolate.py), the network, and a process that detached itself stays behind.
Grade strangers' work in a container.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from minipaged.course import shipped
from minipaged.course import submission as submitted
from minipaged.course.catalog import Exercise, Lesson
from minipaged.course.checks.base import Check, check_of
from minipaged.course.copies import copied_from
from minipaged.course.faults import MISSING, ONLY_THIS_CELL
from minipaged.course.sandbox import Limits, NoAnswer, limits_for, observe
from minipaged.course.script import Case, Observation
from minipaged.course.shipped import Course
from minipaged.course.submission import Submission, SubmissionError
from minipaged.course.verdict import Verdict, diagnosis, judge

_MAX_WORKERS = 4
# what happens in this process: one notebook at a time, since checks need not be made for threads
_here = threading.Lock()


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


@dataclass(frozen=True, slots=True)
class Report:
    """One submission. error: why it could not be graded, or "". notes: what was odd about it and
    cost nothing. seed: what the hidden checks were made from; the same seed makes the same."""

    path: str
    lesson_id: str
    seed: int
    results: tuple[Result, ...]
    notes: tuple[str, ...] = ()
    error: str = ""

    @property
    def points(self) -> int:
        """Points reached."""
        return sum(result.points for result in self.results)

    @property
    def max_points(self) -> int:
        """Points that the lesson's exercises are worth."""
        return sum(result.max_points for result in self.results)

    @property
    def passed(self) -> bool:
        """It was graded, and every exercise passed."""
        return not self.error and all(result.passed for result in self.results)


def grade(
    paths: Sequence[Path],
    seed: int | None = None,
    *,
    limits: Limits | None = None,
    no_copies: bool = False,
    course: Course | None = None,
) -> list[Report]:
    """A report for every notebook; folders stand for the notebooks in them, lessons left out.

    seed: for the hidden checks; None draws one, which the reports state. limits: of an exercise
    (what its check needs, if left out). no_copies: a copy of the reference or of the packaged
    solution gets no points; else it is only noted. course: the installed one if left out.
    Never raises for what stands in a submission; FileNotFoundError for a path that does not exist,
    or if there is no release. Cost: about 0.1 s an exercise, 2 s if it uses tensors, at most its
    limits.seconds; notebooks are graded side by side.
    """
    seed = secrets.randbelow(2**31) if seed is None else seed
    grader = _Grader(seed, limits, no_copies, course or shipped.course())
    with ThreadPoolExecutor(min(_MAX_WORKERS, os.cpu_count() or 1)) as pool:
        return list(pool.map(grader.grade, submitted.expand(paths)))


def exit_code(reports: Iterable[Report]) -> int:
    """0 if every report passed, else 1; 1 also if there is none."""
    reports = list(reports)
    return 0 if reports and all(report.passed for report in reports) else 1


@dataclass(frozen=True, slots=True)
class _Grader:
    seed: int
    limits: Limits | None
    no_copies: bool
    course: Course

    def grade(self, path: Path) -> Report:
        """One submission; whatever is wrong with it is in the report."""
        try:
            notebook = submitted.read(path)
        except SubmissionError as error:
            return self._refuse(path, self._lesson(path, None), error)
        lesson = self._lesson(path, notebook)
        if lesson is None:
            nothing = SubmissionError("no exercise", "No exercise of this course is in it.")
            return self._refuse(path, None, nothing)
        if notebook.is_lesson:
            return self._refuse(path, lesson, _lesson_error(lesson))
        exercises = self.course.catalog.exercises_of(lesson.id)
        originals = [self._original(e, notebook, lesson) for e in exercises]
        pairs = list(zip(exercises, originals, strict=True))
        results = tuple(self._result(e, notebook, original) for e, original in pairs)
        notes = [*_notes(notebook, self.course, exercises), *_copies(pairs)]
        return Report(str(path), lesson.id, self.seed, results, tuple(notes))

    def _lesson(self, path: Path, notebook: Submission | None) -> Lesson | None:
        """Whose notebook this is: by its exercise cells, else its metadata, else its name."""
        ids = {cell.grade_id for cell in notebook.cells} if notebook else set()
        catalog = self.course.catalog
        for exercise in catalog.exercises:
            if exercise.solution_cell in ids:
                return catalog.lesson(exercise.lesson_id)
        claimed = notebook.lesson_id if notebook else ""
        for lesson in catalog.lessons:
            has_exercises = bool(catalog.exercises_of(lesson.id))
            if has_exercises and (lesson.id == claimed or path.name.startswith(lesson.stem)):
                return lesson
        return None

    def _refuse(self, path: Path, lesson: Lesson | None, error: SubmissionError) -> Report:
        """No points; the maximum stays, where the lesson can be told."""
        exercises = self.course.catalog.exercises_of(lesson.id) if lesson else []
        results = tuple(_nothing(exercise, error.status, str(error)) for exercise in exercises)
        lesson_id = lesson.id if lesson else ""
        return Report(str(path), lesson_id, self.seed, results, error=f"{error.status}: {error}")

    def _original(self, exercise: Exercise, notebook: Submission, lesson: Lesson) -> str:
        """What the learner's cell is a copy of, or ""."""
        try:
            with _here:
                source = submitted.solution_source(notebook, exercise)
                return copied_from(source, exercise, self.course.root / "solutions", lesson.stem)
        except SubmissionError:
            return ""

    def _result(self, exercise: Exercise, notebook: Submission, original: str) -> Result:
        with _here:
            check = check_of(exercise)
            visible = check.visible()
            cases = visible + check.hidden(self.seed)
        try:
            if original and self.no_copies:
                raise SubmissionError("copied", f"This is {original}, names aside: write your own.")
            with _here:
                source = submitted.solution_source(notebook, exercise)
            cells = [*self.course.given(exercise), (exercise.solution_cell, source)]
            seen = observe(cells, exercise.name, cases, limits_for(check, self.limits))
        except (SubmissionError, NoAnswer) as error:
            return _nothing(exercise, error.status, str(error), len(cases))
        try:
            with _here:
                return _verdict(exercise, check, cases, seen, len(visible))
        except Exception as error:  # the fault is the check's; the class is graded on
            return _nothing(exercise, "no verdict", _say_no_verdict(error), len(cases))


def _say_no_verdict(error: Exception) -> str:
    return (
        "The check cannot deal with what this cell answered, so nothing is passed "
        f"({type(error).__name__} while judging). If the cell looks right, the check is at fault: "
        "grade this exercise by hand, and report it."
    )


def _lesson_error(lesson: Lesson) -> SubmissionError:
    where = f"exercises/{lesson.stem}.ipynb"
    return SubmissionError("a lesson", f"This is a lesson; the exercises are in {where}.")


def _verdict(
    exercise: Exercise,
    check: Check,
    cases: Sequence[Case],
    seen: Sequence[Sequence[Observation]],
    num_visible: int,
) -> Result:
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


def _nothing(exercise: Exercise, status: str, reason: str, num_cases: int = 0) -> Result:
    return Result(exercise.id, exercise.name, 0, exercise.points, status, reason, 0, num_cases)


def _notes(notebook: Submission, course: Course, exercises: Sequence[Exercise]) -> Iterable[str]:
    """What is odd about the submission's graded cells and was put right."""
    for exercise in exercises:
        for grade_id in (exercise.solution_cell, exercise.check_cell):
            count = len(notebook.sources(grade_id))
            if count > 1:
                yield f"{count} cells have the id {grade_id}: the last one counts, once"
        sources = notebook.sources(exercise.check_cell)
        if not sources:
            yield f"the check cell {exercise.check_cell} is gone: the release's checks were run"
        elif set(sources) - set(course.release(exercise).sources(exercise.check_cell)):
            yield f"{exercise.check_cell} was edited: the release's checks were run"


def _copies(pairs: Iterable[tuple[Exercise, str]]) -> Iterable[str]:
    for exercise, original in pairs:
        if original:
            yield f"{exercise.id} {exercise.name} is {original}, names aside"
