"""A learner's desk: the place where they work, the course that they work through, and where in it.

In a checkout of the repository there is no state: whatever would be remembered is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from minipaged.course import shipped, submission
from minipaged.course.catalog import Catalog, Exercise
from minipaged.course.learner import progress, workspace
from minipaged.course.learner.progress import Progress
from minipaged.course.learner.workspace import NoWorkspace, Place
from minipaged.course.shipped import Course
from minipaged.course.submission import Submission, SubmissionError

NO_PROGRESS = "A checkout keeps no progress; a workspace does: `minipaged init DIR` makes one."


@dataclass(frozen=True, slots=True)
class Desk:
    """place: the workspace (or checkout). course: what is installed."""

    place: Place
    course: Course

    def exercise(self, exercise_id: str | None) -> Exercise:
        """The exercise with this id, else the current one; ValueError if there is none."""
        if exercise_id is not None:
            return find_exercise(self.course.catalog, exercise_id)
        if not self.place.keeps_progress:
            first = self.course.catalog.exercises[0].id
            raise ValueError(
                f"{self.place.root} is a checkout, which keeps no progress: name an exercise, such "
                f"as {first}, or make a workspace with `minipaged init DIR`"
            )
        return self.current(self.place.progress())

    def current(self, state: Progress) -> Exercise:
        """Where the learner is; the first open exercise if the course no longer has that one."""
        exercises = self.course.catalog.exercises
        for exercise in exercises:
            if exercise.id == state.current:
                return exercise
        return next((e for e in exercises if e.id not in state.done), exercises[-1])

    def notebook(self, exercise: Exercise) -> Path:
        """The learner's notebook with this exercise; it may be missing."""
        return self.place.root / self.course.notebook_of(exercise)

    def source(self, exercise: Exercise) -> str:
        """The learner's cell as the file holds it; SubmissionError says what is wrong with it."""
        notebook = self.read(exercise)
        try:
            return submission.solution_source(notebook, exercise)
        except SubmissionError as error:
            if error.status != "missing" or not self.place.keeps_progress:
                raise
            what, _, _ = str(error).rpartition(": ")
            back = f"`minipaged reset {exercise.id}` puts it back as it was handed out."
            raise SubmissionError(error.status, f"{what}: {back}") from None

    def has_cell(self, exercise: Exercise) -> bool:
        """Whether the learner's notebook still has the cell, whatever stands in it."""
        return bool(self.read(exercise).sources(exercise.solution_cell))

    def read(self, exercise: Exercise) -> Submission:
        """The learner's notebook with this exercise; SubmissionError says why there is none."""
        path = self.notebook(exercise)
        again = f"`minipaged init {self.place.root}` lays it out again."
        if not path.exists():
            raise SubmissionError("missing", f"The notebook is missing: {again}")
        try:
            return submission.read(path)
        except SubmissionError as error:
            raise SubmissionError(error.status, f"{error} Move it away; {again}") from None

    def record(self, change: Callable[[Progress], object]) -> None:
        """Change the state, where there is one."""
        if self.place.keeps_progress:
            progress.update(self.place.state, change)

    def require_progress(self, command: str) -> None:
        """NoWorkspace in a checkout, for a command that makes no sense there."""
        if not self.place.keeps_progress:
            raise NoWorkspace(
                f"`minipaged {command}` works in a workspace, and {self.place.root} is a checkout: "
                "`minipaged init DIR` makes one"
            )


def find_exercise(catalog: Catalog, exercise_id: str) -> Exercise:
    """The exercise with this id; ValueError says which was perhaps meant, or which there are."""
    known = {exercise.id for exercise in catalog.exercises}
    numbers = re.fullmatch(r"(\d{1,2})\D(\d)", exercise_id)
    meant = f"{int(numbers[1]):02}.{numbers[2]}" if numbers else ""
    if exercise_id not in known and meant in known:
        raise ValueError(f"there is no exercise {exercise_id!r}: did you mean {meant}?")
    of_lesson = catalog.exercises_of(exercise_id)
    if of_lesson:
        ids = ", ".join(exercise.id for exercise in of_lesson)
        raise ValueError(f"{exercise_id} is a lesson: name one of its exercises, {ids}")
    return catalog.exercise(exercise_id)


def sit_down(start: Path | None = None) -> Desk:
    """The desk that a folder belongs to; NoWorkspace if there is none."""
    return Desk(workspace.find(start), shipped.course())
