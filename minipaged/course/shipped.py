"""The course as it is shipped: the catalog and the notebooks that belong to it, never edited.

They stand inside the installed package, or beside it in a checkout.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from minipaged.course import submission
from minipaged.course.catalog import Catalog, Exercise, Lesson, catalog
from minipaged.course.submission import BEGIN, END, Submission, SubmissionError


@dataclass(frozen=True, slots=True)
class Course:
    """catalog: what there is. root: the folder that holds lessons/, exercises/ and solutions/."""

    catalog: Catalog
    root: Path

    def notebooks(self) -> dict[str, Path]:
        """What a learner gets: the path in a workspace ("lessons/00_tour.ipynb") to the file."""
        return {
            f"{folder}/{path.name}": path
            for folder in ("lessons", "exercises")
            for path in sorted((self.root / folder).glob("*.ipynb"))
        }

    def notebook_of(self, exercise: Exercise) -> str:
        """Where in a workspace an exercise stands: "exercises/00_tour.ipynb"."""
        return f"exercises/{self.catalog.lesson(exercise.lesson_id).stem}.ipynb"

    def release(self, exercise: Exercise) -> Submission:
        """The exercise notebook as it was handed out."""
        return _read(self.root / self.notebook_of(exercise))

    def stub(self, exercise: Exercise) -> str:
        """The exercise's cell as it was handed out."""
        return submission.solution_source(self.release(exercise), exercise)

    def given(self, exercise: Exercise) -> list[tuple[str, str]]:
        """The release's given cells above an exercise's cell: (grade id, source) each.

        SubmissionError if the release has no such cell.
        """
        given: list[tuple[str, str]] = []
        for cell in self.release(exercise).cells:
            if cell.grade_id == exercise.solution_cell:
                return given
            if cell.kind == "code" and "-given-" in cell.grade_id:
                given.append((cell.grade_id, cell.source))
        raise SubmissionError("no release", f"The release has no cell {exercise.solution_cell}.")

    def solution(self, exercise: Exercise) -> str:
        """The solved cell, without the markers around what was the learner's to write."""
        solved = self._solved(self.catalog.lesson(exercise.lesson_id))
        return _without_marks(submission.solution_source(solved, exercise))

    def model_answers(self, lesson: Lesson) -> list[str]:
        """What answers the open questions of a lesson: a text in Markdown each."""
        cells = self._solved(lesson).cells
        return [_without_marks(cell.source) for cell in cells if "-open-" in cell.grade_id]

    def _solved(self, lesson: Lesson) -> Submission:
        return _read(self.root / f"solutions/{lesson.stem}.ipynb")


@functools.cache
def course() -> Course:
    """The installed course; FileNotFoundError says what to do if its notebooks are not there."""
    return Course(catalog(), exercise_folder().parent)


def exercise_folder() -> Path:
    """Where the release notebooks are: inside the package, else beside it in a checkout."""
    here = Path(__file__).resolve()
    for folder in (here.with_name("exercises"), here.parents[2] / "exercises"):
        if any(folder.glob("*.ipynb")):
            return folder
    raise FileNotFoundError(f"{here.parents[2] / 'exercises'} is missing: {_REPAIR}")


_REPAIR = "run `minipaged dev build` in a checkout, or install minipaged again"


def _without_marks(source: str) -> str:
    lines = source.splitlines(keepends=True)
    return "".join(line for line in lines if line.strip() not in (BEGIN, END))


def _read(path: Path) -> Submission:
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: {_REPAIR}")
    try:
        return submission.read(path)
    except SubmissionError as error:
        raise FileNotFoundError(f"{path}: {error} It belongs to the course: {_REPAIR}") from None
