"""All notebooks of the course from their sources, and which of them are out of step.

For each lesson of the catalog:
    lessons/NN_topic.py    -> lessons/NN_topic.ipynb    executed, outputs kept
    solutions/NN_topic.py  -> exercises/NN_topic.ipynb  without solutions, outputs and surprises:
                                                        byte for byte the same at every build
                           -> solutions/NN_topic.ipynb  executed
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode

from minipaged.course.catalog import Catalog, Lesson, catalog
from minipaged.course.dev.execute import execute
from minipaged.course.dev.notebook import (
    BuildError,
    lesson_notebook,
    solved_notebook,
    strip,
    text_of,
)
from minipaged.course.learner.workspace import is_checkout

REBUILD = "run `minipaged dev build`"
_BELONGS = {"lessons": (".py", ".ipynb"), "exercises": (".ipynb",), "solutions": (".py", ".ipynb")}


def find_root(start: Path) -> Path:
    """The repository that a folder is in; BuildError if it is in none."""
    for folder in (start.resolve(), *start.resolve().parents):
        if is_checkout(folder):
            return folder
    raise BuildError(f"{start} is not in a checkout of minipaged: go there to build its notebooks")


class Fresh(NamedTuple):
    """A notebook as its source asks for it, not executed, and where it belongs."""

    target: Path
    notebook: NotebookNode

    @property
    def runs(self) -> bool:
        """It is executed when it is built."""
        return self.target.parent.name != "exercises"

    @property
    def problem(self) -> str | None:
        """What is wrong with the file on disk and what to do, or None."""
        return _problem(self.target, self.notebook, self.runs)


def build(
    root: Path,
    *,
    force: bool = False,
    course: Catalog | None = None,
    lessons: Collection[str] = (),
    report: Callable[[str, int, int], None] = lambda file, number, total: None,
) -> list[Path]:
    """Build what is out of step (or everything, with force); returns the files written.

    root: the repository. lessons: ids to build; all if empty. report: told each file before it is
    made, its number from 1 on, and how many there are. BuildError says what is wrong in which
    source, before anything is built, or which cell fails; what was built before it stays.
    Executing takes seconds a notebook.
    """
    course = course or catalog()
    chosen = [course.lesson(i) for i in lessons] or course.lessons
    fresh = [one for lesson in chosen for one in fresh_notebooks(root, lesson, course)]
    todo = [one for one in fresh if force or one.problem]
    for number, one in enumerate(todo, 1):
        report(one.target.relative_to(root).as_posix(), number, len(todo))
        if one.runs:
            _execute(one.notebook, root, one.target)
        one.target.parent.mkdir(exist_ok=True)
        one.target.write_text(text_of(one.notebook), encoding="utf-8", newline="\n")
    return [one.target for one in todo]


def strays(root: Path, course: Catalog) -> list[str]:
    """A line for every file of the three folders that no lesson of the catalog has."""
    lines = []
    for folder, endings in _BELONGS.items():
        known = {f"{lesson.stem}{ending}" for lesson in course.lessons for ending in endings}
        for path in sorted((root / folder).glob("*")):
            if path.name not in known | {"README.md", "nbval.cfg"} and path.name[0] not in "._":
                lines.append(
                    f"{folder}/{path.name} belongs to no lesson of the catalog: remove it, or add "
                    "the lesson"
                )
    return lines


def fresh_notebooks(root: Path, lesson: Lesson, course: Catalog) -> list[Fresh]:
    """The exercise, lesson and solution notebook of a lesson; BuildError if a source is wrong."""
    sources = [root / folder / f"{lesson.stem}.py" for folder in ("lessons", "solutions")]
    for source in sources:
        if not source.is_file():
            raise BuildError(
                f"{source.relative_to(root).as_posix()} is missing: write it, or take lesson "
                f"{lesson.id} out of the catalog"
            )
    solved = solved_notebook(sources[1], lesson, course)
    name = f"{lesson.stem}.ipynb"
    return [
        Fresh(root / "exercises" / name, strip(solved)),
        Fresh(root / "lessons" / name, lesson_notebook(sources[0], lesson)),
        Fresh(root / "solutions" / name, solved),
    ]


def _problem(target: Path, fresh: NotebookNode, is_executed: bool) -> str | None:
    """What is wrong with a notebook on disk, or None."""
    if not target.is_file():
        return f"does not exist: {REBUILD}"
    text = target.read_bytes()
    if not is_executed:
        same = text == text_of(fresh).encode()
        return None if same else f"differs from what its source gives: {REBUILD}"
    try:
        old = nbformat.reads(text.decode(), as_version=4)
    except Exception:
        return f"is not a notebook any more: {REBUILD}"
    if old.metadata.get("minipaged") != fresh.metadata["minipaged"]:
        return f"was made from an older source: {REBUILD}"
    if [_identity(c) for c in old.cells] != [_identity(c) for c in fresh.cells]:
        return f"has cells that its source does not give; edit the .py, then {REBUILD}"
    if any(c.cell_type == "code" and c.execution_count is None for c in old.cells):
        return f"was not executed: {REBUILD}"
    return None


def _identity(cell: NotebookNode) -> tuple[object, ...]:
    return cell.id, cell.cell_type, cell.source, cell.metadata


def _execute(notebook: NotebookNode, root: Path, target: Path) -> None:
    try:
        execute(notebook, root)
    except BuildError as error:
        raise BuildError(f"{target.relative_to(root).as_posix()}: {error}") from None
