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
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from minipaged.course import remarks, shipped
from minipaged.course import submission as submitted
from minipaged.course.catalog import Exercise, Lesson
from minipaged.course.checks.base import check_of
from minipaged.course.copies import copied_from
from minipaged.course.reply import STOPPED
from minipaged.course.result import Result, judged, nothing, say_no_verdict
from minipaged.course.sandbox import Limits, NoAnswer, limits_for, observe
from minipaged.course.shipped import Course
from minipaged.course.submission import Submission, SubmissionError
from minipaged.require import require_real

_MAX_WORKERS = 4
# what happens in this process: one notebook at a time, since checks need not be made for threads
_here = threading.Lock()


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


# told after each notebook: its report, how many there are by now, and how many there will be
Tell = Callable[[Report, int, int], object]


class GradingStopped(KeyboardInterrupt):
    """Somebody stopped the grading. reports: of the notebooks that were through, of total."""

    def __init__(self, reports: list[Report], total: int) -> None:
        super().__init__()
        self.reports, self.total = reports, total


def grade(
    paths: Sequence[Path],
    seed: int | None = None,
    *,
    limits: Limits | None = None,
    seconds: float | None = None,
    no_copies: bool = False,
    course: Course | None = None,
    tell: Tell | None = None,
) -> list[Report]:
    """A report for every notebook; folders stand for the notebooks in them, lessons left out.

    seed: for the hidden checks; None draws one, which the reports state. limits: of an exercise
    (what its check needs, if left out). seconds: of an exercise without tensors. no_copies: a copy
    of the reference or of the packaged solution gets no points; else it is only noted. course: the
    installed one if left out.
    Never raises for what stands in a submission; FileNotFoundError for a path that does not exist,
    or if there is no release. GradingStopped if a KeyboardInterrupt comes: no worker is left.
    Cost: about 0.1 s an exercise, 2 s if it uses tensors, at most its limits.seconds; notebooks are
    graded side by side.
    """
    if seconds is not None:
        require_real("seconds", seconds, 0.1, "an exercise without tensors usually has 10")
    seed = secrets.randbelow(2**31) if seed is None else seed
    grader = _Grader(seed, limits, no_copies, course or shipped.course(), seconds)
    expanded = submitted.expand(paths)
    pool = ThreadPoolExecutor(min(_MAX_WORKERS, os.cpu_count() or 1))
    futures = [pool.submit(grader.grade, path) for path in expanded]
    try:
        for number, future in enumerate(as_completed(futures), 1):
            report = future.result()
            if tell is not None:
                tell(report, number, len(futures))
    except KeyboardInterrupt:
        _end(pool, grader.stop)
        raise GradingStopped(_through(futures), len(futures)) from None
    finally:
        _end(pool, grader.stop)
    return [future.result() for future in futures]


def _end(pool: ThreadPoolExecutor, stop: threading.Event) -> None:
    """Let no notebook begin, end the workers that run, and wait for that: whoever is in a hurry and
    interrupts again would leave them behind."""
    while True:
        try:
            stop.set()
            pool.shutdown(cancel_futures=True)
            return
        except KeyboardInterrupt:
            continue


def _through(futures: Sequence[Future[Report]]) -> list[Report]:
    """The reports on notebooks that were not stopped, in order."""
    ended = [future for future in futures if future.done() and not future.cancelled()]
    reports = [future.result() for future in ended if future.exception() is None]
    return [one for one in reports if STOPPED not in {result.status for result in one.results}]


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
    seconds: float | None
    stop: threading.Event = field(default_factory=threading.Event)

    def grade(self, path: Path) -> Report:
        """One submission; whatever is wrong with it is in the report."""
        try:
            notebook = submitted.read(path)
        except SubmissionError as error:
            return self._refuse(path, self._lesson(path, None), error)
        lesson = self._lesson(path, notebook)
        if lesson is None:
            empty = SubmissionError("no exercise", "No exercise of this course is in it.")
            return self._refuse(path, None, empty)
        if notebook.is_lesson:
            return self._refuse(path, lesson, _lesson_error(lesson))
        exercises = self.course.catalog.exercises_of(lesson.id)
        originals = [self._original(e, notebook, lesson) for e in exercises]
        pairs = list(zip(exercises, originals, strict=True))
        results = tuple(self._result(e, notebook, original) for e, original in pairs)
        notes = list(remarks.notes(notebook, self.course, exercises))
        if not self.no_copies:  # else the reasons say it
            notes += remarks.copies(pairs)
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
        results = tuple(nothing(exercise, error.status, str(error)) for exercise in exercises)
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
            visible, hidden = check.visible(), check.hidden(self.seed)
            cases = visible + hidden
        try:
            if original and self.no_copies:
                raise SubmissionError("copied", f"This is {original}, names aside: write your own.")
            with _here:
                source = submitted.solution_source(notebook, exercise)
            cells = [*self.course.given(exercise), (exercise.solution_cell, source)]
            limits = limits_for(check, self.limits, seconds=self.seconds)
            name, stop = exercise.name, self.stop
            seen = observe(cells, name, visible, limits, hidden=hidden, stop=stop)
        except (SubmissionError, NoAnswer) as error:
            return nothing(exercise, error.status, str(error), len(cases))
        try:
            with _here:
                return judged(exercise, check, cases, seen, len(visible))
        except Exception as error:  # the fault is the check's; the class is graded on
            return nothing(exercise, "no verdict", say_no_verdict(error), len(cases))


def _lesson_error(lesson: Lesson) -> SubmissionError:
    where = f"exercises/{lesson.stem}.ipynb"
    return SubmissionError("a lesson", f"This is a lesson; the exercises are in {where}.")
