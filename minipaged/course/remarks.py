"""What is odd about a submission and costs nothing: a sentence each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from minipaged.course.catalog import Exercise
from minipaged.course.shipped import Course
from minipaged.course.submission import Submission


def notes(notebook: Submission, course: Course, exercises: Sequence[Exercise]) -> Iterable[str]:
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
    yield from _of_other_lessons(notebook, course, exercises)


def _of_other_lessons(
    notebook: Submission, course: Course, exercises: Sequence[Exercise]
) -> Iterable[str]:
    ids = {cell.grade_id for cell in notebook.cells}
    here = exercises[0].lesson_id
    for other in course.catalog.exercises:
        if other.lesson_id != here and other.solution_cell in ids:
            yield (
                f"{other.solution_cell} is of lesson {other.lesson_id} and was not graded: this "
                f"notebook counts as lesson {here}"
            )


def copies(pairs: Iterable[tuple[Exercise, str]]) -> Iterable[str]:
    """Which cells are copies of what."""
    for exercise, original in pairs:
        if original:
            yield f"{exercise.id} {exercise.name} is {original}, names aside"
