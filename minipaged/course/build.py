"""All notebooks of the course from their sources, and which of them are out of step.

For each lesson of the catalog:
    lessons/NN_topic.py    -> lessons/NN_topic.ipynb    executed, outputs kept
    solutions/NN_topic.py  -> exercises/NN_topic.ipynb  without solutions, outputs and surprises:
                                                        byte for byte the same at every build
                           -> solutions/NN_topic.ipynb  executed
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from minipaged.course.catalog import Catalog, Lesson, catalog
from minipaged.course.execute import execute
from minipaged.course.notebook import (
    BuildError,
    lesson_notebook,
    solved_notebook,
    strip,
    text_of,
)

REBUILD = "run `minipaged dev build`"


def find_root(start: Path) -> Path:
    """The repository that a folder is in; BuildError if it is in none."""
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / "minipaged/course/catalog.toml").is_file() and (folder / "solutions").is_dir():
            return folder
    raise BuildError(f"{start} is not in a checkout of minipaged: go there to build its notebooks")


def build(
    root: Path,
    *,
    force: bool = False,
    course: Catalog | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> list[Path]:
    """Build what is out of step (or everything, with force); returns the files written.

    root: the repository. report: told each file before it is made. BuildError says what is wrong
    in which source; what was built before it stays. Executing takes seconds a notebook.
    """
    written = []
    for lesson in (course or catalog()).lessons:
        for target, fresh in _fresh_notebooks(root, lesson, course or catalog()):
            runs = target.parent.name != "exercises"
            if not force and _problem(target, fresh, runs) is None:
                continue
            report(str(target.relative_to(root)))
            if runs:
                _execute(fresh, root, target)
            target.parent.mkdir(exist_ok=True)
            target.write_text(text_of(fresh), encoding="utf-8", newline="\n")
            written.append(target)
    return written


def stale(root: Path, course: Catalog | None = None) -> list[str]:
    """A line for every notebook that is out of step with its source, and what to do; executes
    nothing. BuildError if a source itself is wrong."""
    lines = []
    known: set[Path] = set()
    for lesson in (course or catalog()).lessons:
        for target, fresh in _fresh_notebooks(root, lesson, course or catalog()):
            known.add(target)
            problem = _problem(target, fresh, target.parent.name != "exercises")
            if problem:
                lines.append(f"{target.relative_to(root)} {problem}")
    for folder in ("lessons", "exercises", "solutions"):
        for path in sorted((root / folder).glob("*.ipynb")):
            if path not in known:
                lines.append(
                    f"{path.relative_to(root)} belongs to no lesson of the catalog: remove it, or "
                    "add the lesson"
                )
    return lines


def _fresh_notebooks(
    root: Path, lesson: Lesson, course: Catalog
) -> Iterator[tuple[Path, NotebookNode]]:
    """Each notebook of a lesson as its source asks for it, not executed."""
    sources = [root / folder / f"{lesson.stem}.py" for folder in ("lessons", "solutions")]
    for source in sources:
        if not source.is_file():
            raise BuildError(
                f"{source.relative_to(root)} is missing: write it, or take lesson {lesson.id} out "
                "of the catalog"
            )
    solved = solved_notebook(sources[1], lesson, course)
    name = f"{lesson.stem}.ipynb"
    yield root / "exercises" / name, strip(solved)
    yield root / "lessons" / name, lesson_notebook(sources[0], lesson)
    yield root / "solutions" / name, solved


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
        raise BuildError(f"{target.relative_to(root)}: {error}") from None
