"""The course treated as code: every fault of it in a line that says file, what, and what to do.

`minipaged dev check` prints these lines. Rules on skeletons are in lint_cells, on what a lesson
says in lint_prose, on leaks in lint_leaks; lint_run runs skeletons and solutions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from minipaged.course import needs
from minipaged.course.catalog import NUM_HINTS, Catalog, Exercise, Lesson, catalog
from minipaged.course.checks.base import Check, check_of
from minipaged.course.dev import lint_cells, lint_leaks, lint_prose
from minipaged.course.dev.build import REBUILD, Fresh, fresh_notebooks, strays
from minipaged.course.dev.lint_leaks import Leak, Secret
from minipaged.course.dev.lint_run import Runner, hidden_secrets
from minipaged.course.dev.notebook import BuildError

SEED = 1
MAX_TASKS = 4
TOUR = "00"  # the one lesson that needs no interactive part and no open question
_CATALOG = "minipaged/course/catalog.toml"


@dataclass(frozen=True)
class _Material:
    """A lesson and its exercise, lesson and solution notebook, as their sources ask for them."""

    lesson: Lesson
    exercises: tuple[Exercise, ...]
    notebooks: tuple[Fresh, ...]

    @property
    def stripped(self) -> list[NotebookNode]:
        """Cells of the exercise notebook."""
        return self.notebooks[0].notebook.cells

    @property
    def read(self) -> list[NotebookNode]:
        """Cells of the lesson."""
        return self.notebooks[1].notebook.cells

    @property
    def solved(self) -> list[NotebookNode]:
        """Cells of the solved notebook."""
        return self.notebooks[2].notebook.cells

    def source(self, folder: str) -> str:
        """The name of a source, from the root on."""
        return f"{folder}/{self.lesson.stem}.py"

    def cells_of(self, exercise: Exercise, *, solved: bool) -> list[tuple[str, str]]:
        """What has to run for an exercise: the given cells above it, then its own."""
        cells: list[tuple[str, str]] = []
        for cell in self.solved if solved else self.stripped:
            if cell.id == exercise.solution_cell:
                return [*cells, (cell.id, cell.source)]
            if cell.cell_type == "code" and "-given-" in cell.id:
                cells.append((cell.id, cell.source))
        raise AssertionError(f"no cell {exercise.solution_cell}")  # building refuses it

    def secrets(self) -> Iterator[Secret]:
        """The solutions and the model answers."""
        names = {e.solution_cell: e.id for e in self.exercises}
        for cell in self.solved:
            if cell.id in names:
                yield lint_leaks.secret_of(cell, names[cell.id])
            elif "-open-" in cell.id:
                yield lint_leaks.secret_of(cell, f"the model answer {cell.id}")


def lint(root: Path, course: Catalog | None = None, *, seed: int = SEED) -> list[str]:
    """A line for every fault of the course; none if it is whole.

    root: the repository. seed: of the hidden cases that solutions must pass. Executes skeletons
    and solutions in warm workers, no notebooks: seconds.
    """
    course = course or catalog()
    lines = [f"{_CATALOG}: {fault}" for e in course.exercises for fault in _entry_faults(e)]
    materials = []
    for lesson in course.lessons:
        try:
            notebooks = tuple(fresh_notebooks(root, lesson, course))
        except BuildError as error:
            lines += [] if str(error) in lines else [str(error)]  # a missing tool is named once
            continue
        exercises = tuple(course.exercises_of(lesson.id))
        materials.append(_Material(lesson, exercises, notebooks))
    with Runner(seed) as runner:
        for material in materials:
            lines += _lesson_lines(material)
            for exercise in material.exercises:
                lines += _exercise_lines(material, exercise, runner)
    lines += _file_lines(root, materials)
    return lines + strays(root, course)


def _entry_faults(exercise: Exercise) -> Iterator[str]:
    """What is wrong with an exercise's entry of the catalog."""
    hints = [hint.strip() for hint in exercise.hints]
    if len(hints) != NUM_HINTS:
        yield f"{exercise.id} has {len(hints)} hints: give {NUM_HINTS}, each says more"
    for number, hint in enumerate(hints, 1):
        if hint in ("", "TODO"):
            yield f"{exercise.id}, hint {number} is {hint!r}: write it"
            break
        if hint in hints[: number - 1]:
            yield f"{exercise.id}, hint {number} repeats an earlier one: let it say more"
    for fault in lint_prose.unknown_references(exercise.claims, exercise.cases):
        yield f"{exercise.id}: {fault}"


def _lesson_lines(material: _Material) -> Iterator[str]:
    """What a lesson says and offers."""
    lesson, solution = material.source("lessons"), material.source("solutions")
    for fault in lint_prose.length_faults(lint_prose.prose_of(material.read)):
        yield f"{lesson} {fault}"
    for source, cells in ((lesson, material.read), (solution, material.solved)):
        for fault in lint_prose.reference_faults(lint_prose.prose_of(cells)):
            yield f"{source}: {fault}"
    if not 1 <= len(material.exercises) <= MAX_TASKS:
        yield (
            f"exercises/{material.lesson.stem}.ipynb has {len(material.exercises)} tasks: have 1 "
            f"to {MAX_TASKS} in the catalog"
        )
    if material.lesson.id == TOUR:
        return
    if not lint_prose.is_interactive(material.read):
        wanted = " or ".join(lint_prose.INTERACTIVE)
        yield f"{lesson} has nothing to play with: add a cell that calls {wanted}"
    if not any("-open-" in cell.id for cell in material.solved):
        yield f"{solution} has no open question: add one, and its answer in a cell with open=true"


def _exercise_lines(material: _Material, exercise: Exercise, runner: Runner) -> Iterator[str]:
    """An exercise's skeleton, solution and hidden checks."""
    where = f"{material.source('solutions')}, {exercise.id}"
    solution, skeleton = (material.cells_of(exercise, solved=solved) for solved in (True, False))
    for fault in lint_cells.skeleton_faults(solution[-1][1], skeleton[-1][1]):
        yield f"{where}: {fault}"
    try:
        check = check_of(exercise)
    except ModuleNotFoundError as error:
        yield _say_missing(exercise.check, error)
        return
    except LookupError as error:
        yield f"minipaged/course/checks/{error}"
        return
    if needs.needed_by(source for _, source in solution) not in (None, exercise.needs):
        yield f'{where} imports triton: give it needs = "triton" in the catalog'
    if not needs.lacking(exercise.needs):
        for fault in runner.solution_faults(exercise, check, solution):
            yield f"{where} {fault}"
        for fault in runner.skeleton_faults(exercise, check, skeleton):
            yield f"{where} {fault}"
    yield from _hidden_lines(material, exercise, check, runner.seed)


def _say_missing(check: str, error: ModuleNotFoundError) -> str:
    file = f"minipaged/course/checks/{check}.py"
    if error.name == f"minipaged.course.checks.{check}":
        return f"{file}: no such module: write it"
    return f"{file}: cannot be imported ({error}): install what it needs, or mend the import"


def _hidden_lines(
    material: _Material, exercise: Exercise, check: Check, seed: int
) -> Iterator[str]:
    secrets = list(hidden_secrets(exercise, check, seed))
    cells = material.stripped
    leaks = [*lint_leaks.shown_lines(secrets, cells), *lint_leaks.shown_runs(secrets, cells)]
    for leak in leaks:
        yield f"{_say(material.source('solutions'), leak)}: take it out"


def _file_lines(root: Path, materials: Sequence[_Material]) -> Iterator[str]:
    """Leaks, and notebooks that are out of step; a leak that stands only in a file on disk is told
    instead of the drift."""
    secrets = [secret for material in materials for secret in material.secrets()]
    for material in materials:
        shown = list(lint_leaks.shown_lines(secrets, material.stripped))
        for leak in shown:
            yield f"{_say(material.source('solutions'), leak)}: take it out"
        for leak in lint_leaks.shown_runs(secrets, material.read):
            yield f"{_say(material.source('lessons'), leak)} and what follows it: take them out"
        for one in material.notebooks:
            file = one.target.relative_to(root).as_posix()
            drifted = [] if one.runs else _leaks_on_disk(one, secrets, shown)
            for leak in drifted:
                yield f"{_say(file, leak)}, its source does not: {REBUILD}"
            if one.problem and not drifted:
                yield f"{file} {one.problem}"


def _leaks_on_disk(one: Fresh, secrets: Iterable[Secret], known: Sequence[Leak]) -> list[Leak]:
    """Leaks in an exercise notebook's file that its source does not have."""
    try:
        cells = nbformat.read(one.target, as_version=4).cells
    except Exception:
        return []  # `problem` says what is wrong with it
    return [leak for leak in lint_leaks.shown_lines(secrets, cells) if leak not in known]


def _say(file: str, leak: Leak) -> str:
    line = leak.line if len(leak.line) <= 60 else leak.line[:60] + "…"
    return f"{file}: cell {leak.cell_id} shows a line of {leak.secret.name} (`{line}`)"
