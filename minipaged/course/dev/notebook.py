"""From a source in percent format to a notebook, and from a solved notebook to an exercise.

A source's code cells carry short attributes; here they become nbgrader's metadata (version 3):

    # %% exercise="00.1"    the learner's cell; what is theirs to write stands between
                            ### BEGIN SOLUTION and ### END SOLUTION, in a class once a method
    # %% check="00.1"       the check of it
    # %% given=true         code that the learner's cells need; locked, and run at grading
    # %% [markdown] open=true     an open question's answer, between the same markers: the learner
                            writes an own one, worth no points

What `strip` makes of a solved notebook equals what nbgrader's own preprocessors make of it. It is
done here, because nbgrader takes a second to import and brings much along.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from minipaged.course.catalog import Catalog, Lesson
from minipaged.course.submission import BEGIN, END

STUB = ("# YOUR CODE HERE", "raise NotImplementedError()")
TEXT_STUB = ("YOUR ANSWER HERE",)
_KINDS = ("exercise", "check", "given", "open")
_ATTRIBUTES = {*_KINDS, "tags"}


class BuildError(ValueError):
    """A notebook cannot be built; the message names the source and says what to do."""


def read_source(path: Path) -> NotebookNode:
    """The cells of a percent-format source, with their attributes as metadata.

    BuildError if jupytext is missing.
    """
    try:
        import jupytext
    except ImportError:
        raise BuildError(
            "building notebooks needs jupytext, which is not installed: "
            "pip install 'minipaged[dev]'"
        ) from None
    notebook = jupytext.reads(path.read_text(encoding="utf-8"), fmt="py:percent")
    for cell in notebook.cells:
        # jupytext's note to itself about blank lines
        cell.metadata.pop("lines_to_next_cell", None)
    return notebook


def lesson_notebook(path: Path, lesson: Lesson) -> NotebookNode:
    """A lesson, not executed. Nothing in it is graded, so its cells carry fixed ids only."""
    source = read_source(path)
    for cell in source.cells:
        if set(cell.metadata) & set(_KINDS):
            raise BuildError(f"{path.name}: exercises belong into solutions/, not into a lesson")
    cells = [_plain_cell(cell, name) for cell, name in _named(source.cells, lesson, path)]
    return _assemble(cells, lesson, "lesson", path)


def solved_notebook(path: Path, lesson: Lesson, catalog: Catalog) -> NotebookNode:
    """The exercises of a lesson with their solutions, not executed."""
    source = read_source(path)
    cells = []
    for cell, name in _named(source.cells, lesson, path):
        try:
            cells.append(_graded_cell(cell, name, catalog))
        except ValueError as error:
            raise BuildError(f"{path.name}, cell {name}: {error}") from None
    _require_all(path, [cell.id for cell in cells], lesson, catalog)
    return _assemble(cells, lesson, "solution", path)


def strip(solved: NotebookNode) -> NotebookNode:
    """The exercise notebook: no solution, no output, cells locked, checksums set."""
    cells = [_stripped_cell(cell) for cell in solved.cells]
    metadata = _sorted(solved.metadata)
    metadata["minipaged"] = {"kind": "exercise", "lesson": solved.metadata["minipaged"]["lesson"]}
    return nbformat.from_dict({**_FORMAT, "metadata": metadata, "cells": cells})


def text_of(notebook: NotebookNode) -> str:
    """The notebook as its file holds it; the same notebook always gives the same text."""
    return nbformat.writes(notebook) + "\n"


def source_hash(path: Path) -> str:
    """What an executed notebook remembers its source by; line ends do not count."""
    text = path.read_text(encoding="utf-8")
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def solution_regions(source: str) -> list[tuple[int, int]]:
    """The numbers of the marker lines, a pair a region; ValueError unless they alternate."""
    lines = [line.strip() for line in source.splitlines()]
    marks = [(number, line) for number, line in enumerate(lines) if line in (BEGIN, END)]
    if not marks or [line for _, line in marks] != [BEGIN, END] * (len(marks) // 2):
        raise ValueError(f"an exercise needs at least one {BEGIN} … {END}, and each closed")
    numbers = [number for number, _ in marks]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


_FORMAT = {"nbformat": 4, "nbformat_minor": 5}
_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def _assemble(cells: list[Any], lesson: Lesson, kind: str, path: Path) -> NotebookNode:
    own = {"kind": kind, "lesson": lesson.id, "source_hash": source_hash(path)}
    metadata = {"kernelspec": _KERNEL, "language_info": {"name": "python"}, "minipaged": own}
    return nbformat.from_dict({**_FORMAT, "metadata": metadata, "cells": cells})


def _named(cells: list[Any], lesson: Lesson, path: Path) -> list[tuple[Any, str]]:
    """Each cell with the id it gets: a graded one from its exercise, others by counting."""
    counts: Counter[str] = Counter()
    named = []
    for cell in cells:
        unknown = set(cell.metadata) - _ATTRIBUTES
        if unknown:
            raise BuildError(
                f"{path.name}: unknown attribute {min(unknown)!r}: use {sorted(_ATTRIBUTES)}"
            )
        kind = "text" if cell.cell_type == "markdown" else "code"
        kind = next((key for key in _KINDS if key in cell.metadata), kind)
        counts[kind] += 1
        named.append((cell, f"{lesson.id}-{kind}-{counts[kind]}"))
    return named


def _plain_cell(cell: Any, cell_id: str, metadata: dict[str, Any] | None = None) -> NotebookNode:
    metadata = dict(metadata or {})
    if "tags" in cell.metadata:
        metadata["tags"] = list(cell.metadata["tags"])
    made = {"cell_type": cell.cell_type, "id": cell_id, "metadata": metadata, "source": cell.source}
    if cell.cell_type == "code":
        made |= {"execution_count": None, "outputs": []}
    return nbformat.from_dict(made)


def _graded_cell(cell: Any, name: str, catalog: Catalog) -> NotebookNode:
    """A cell of a solved notebook with its nbgrader metadata; ValueError says what is wrong."""
    attributes = cell.metadata
    if sum(key in attributes for key in _KINDS) > 1:
        raise ValueError(f"a cell is one of {', '.join(_KINDS)}")
    if "open" in attributes:
        solution_regions(cell.source)
        return _nbgrader_cell(cell, name, grade=True, solution=True, points=0)
    if "exercise" in attributes:
        solution_regions(cell.source)
        exercise = catalog.exercise(attributes["exercise"])
        return _nbgrader_cell(cell, exercise.solution_cell, solution=True)
    if BEGIN in cell.source or END in cell.source:
        raise ValueError(f'a solution stands in a cell without exercise="…": {BEGIN}')
    if "check" in attributes:
        exercise = catalog.exercise(attributes["check"])
        return _nbgrader_cell(
            cell, exercise.check_cell, grade=True, locked=True, points=exercise.points
        )
    if cell.cell_type == "markdown" or "given" in attributes:
        return _nbgrader_cell(cell, name, locked=True)
    return _plain_cell(cell, name)


def _nbgrader_cell(cell: Any, grade_id: str, **marks: Any) -> NotebookNode:
    mark = {"grade": False, "locked": False, "solution": False, "task": False, **marks}
    mark |= {"grade_id": grade_id, "schema_version": 3}
    return _plain_cell(cell, grade_id, {"nbgrader": mark})


def _require_all(path: Path, ids: list[str], lesson: Lesson, catalog: Catalog) -> None:
    """Each exercise of the lesson has its cell and, below it, its check; no others are there."""
    wanted = [
        grade_id
        for exercise in catalog.exercises_of(lesson.id)
        for grade_id in (exercise.solution_cell, exercise.check_cell)
    ]
    found = [cell_id for cell_id in ids if re.match("ex-|check-", cell_id)]
    if found != wanted:
        raise BuildError(
            f"{path.name} has the cells {found}, but the catalog asks for {wanted}, in this order"
        )


def _stripped_cell(cell: NotebookNode) -> NotebookNode:
    """One cell of the exercise notebook, as nbgrader's generate_assignment makes it."""
    metadata = _sorted(cell.metadata)
    mark = metadata.get("nbgrader")
    source = cell.source
    if mark is not None:
        metadata["deletable"] = False
        if mark["solution"]:
            stub = STUB if cell.cell_type == "code" else TEXT_STUB
            source = _without_solution(source, stub)
        else:
            metadata["editable"] = False
        mark |= {"cell_type": cell.cell_type, "checksum": _checksum(cell.cell_type, source, mark)}
    made = {"cell_type": cell.cell_type, "id": cell.id, "metadata": metadata, "source": source}
    if cell.cell_type == "code":
        made |= {"execution_count": None, "outputs": []}
    return nbformat.from_dict(made)


def _without_solution(source: str, stub: tuple[str, ...]) -> str:
    lines = source.split("\n")
    for first, last in reversed(solution_regions(source)):
        indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
        lines[first : last + 1] = [indent + line for line in stub]
    return "\n".join(lines)


def _checksum(cell_type: str, source: str, mark: dict[str, Any]) -> str:
    """nbgrader's checksum of a cell (nbgrader/utils.py, compute_checksum)."""
    locked = mark["locked"] and not mark["solution"]
    parts = [source, cell_type, str(mark["grade"]), str(mark["solution"]), str(locked)]
    parts.append(mark["grade_id"])
    if mark["grade"]:
        parts.append(str(float(mark["points"])))
    return hashlib.md5("".join(parts).encode(), usedforsecurity=False).hexdigest()


def _sorted(value: Any) -> Any:
    """A copy as plain dicts with sorted keys."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
