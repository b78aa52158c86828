"""A submitted notebook: read without running it, without trusting it, and without a warning.

Only the JSON is looked at, so a notebook without cell ids, with inserted cells or from an older
format is as good as any. The learner's cells are found by their grade id, whatever else happened
to the notebook.
"""

from __future__ import annotations

import ast
import json
import os
import stat
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minipaged.course import plain
from minipaged.course.catalog import Exercise

MAX_BYTES = 50 * 2**20
# in a solved cell: around what is the learner's to write
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"


class SubmissionError(Exception):
    """The file cannot be graded at all, or a cell of it cannot; the message says why.

    status: in two words.
    """

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True, slots=True)
class Cell:
    """One code or text cell; grade_id is nbgrader's, else the cell's own id, else ""."""

    grade_id: str
    kind: str
    source: str


@dataclass(frozen=True, slots=True)
class Submission:
    """The cells of a notebook in order; lesson_id and kind as its metadata has them, or ""."""

    cells: tuple[Cell, ...]
    lesson_id: str = ""
    kind: str = ""

    @property
    def is_lesson(self) -> bool:
        """A lesson to read: by its metadata, unless an exercise was copied into it."""
        return self.kind == "lesson" and not any(c.grade_id.startswith("ex-") for c in self.cells)

    def sources(self, grade_id: str) -> list[str]:
        """The source of every code cell with this grade id; one, if all is well."""
        return [c.source for c in self.cells if c.grade_id == grade_id and c.kind == "code"]


def read(path: Path) -> Submission:
    """Read a notebook of format 4; SubmissionError says why a file is none."""
    try:
        data = json.loads(_read_bytes(path).decode("utf-8-sig"))
    except OSError as error:
        raise SubmissionError("not readable", f"It cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise SubmissionError("not a notebook", "It is not text in UTF-8.") from None
    except (ValueError, RecursionError) as error:
        raise SubmissionError("not a notebook", f"It is not JSON: {error}.") from None
    if type(data) is not dict or data.get("nbformat") != 4 or type(data.get("cells")) is not list:
        raise SubmissionError(
            "not a notebook", "It is not a notebook of format 4: open it in Jupyter and save it."
        )
    claims = [_nested(data, "metadata", "minipaged", key) for key in ("lesson", "kind")]
    lesson_id, kind = (claim if type(claim) is str else "" for claim in claims)
    return Submission(tuple(_cells(data["cells"])), lesson_id, kind)


def _read_bytes(path: Path) -> bytes:
    """What a regular file holds; a pipe or a device might never end."""
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode) and path.suffix != ".ipynb":
        _require_searchable(path)
    if not stat.S_ISREG(mode):
        raise SubmissionError("not a notebook", "It is not a regular file.")
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise SubmissionError("not a notebook", f"It is larger than {MAX_BYTES >> 20} MiB.")
    return content


def _require_searchable(folder: Path) -> None:
    try:
        os.scandir(folder).close()
    except OSError as error:
        reason = f"This folder cannot be searched: {error.strerror}."
        raise SubmissionError("not readable", reason) from None


def expand(paths: Iterable[Path]) -> list[Path]:
    """Files as they are, folders as the notebooks below them, sorted, without checkpoints and
    without lessons. What is named twice comes once. FileNotFoundError for a path that is not there;
    what cannot be read below a folder is among them (see read), a folder included."""
    found: dict[Path, Path] = {}
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist: give notebooks or folders of them")
        for one in _inside(path) if path.is_dir() else [path]:
            found.setdefault(one.parent.resolve() / one.name, one)
    return list(found.values())


def _inside(folder: Path) -> list[Path]:
    found, closed = [], []

    def note(error: OSError) -> None:
        closed.append(Path(error.filename))

    for where, folders, files in os.walk(folder, onerror=note):
        names = (name for name in [*folders, *files] if name.endswith(".ipynb"))
        found += [Path(where, name) for name in names]
    notebooks = (p for p in found if ".ipynb_checkpoints" not in p.parts)
    inside = sorted([*(p for p in notebooks if not _is_lesson(p)), *closed])
    if not inside:
        raise FileNotFoundError(f"there is no notebook (.ipynb) to grade in {folder}")
    return inside


def _is_lesson(path: Path) -> bool:
    try:
        return read(path).is_lesson
    except SubmissionError:
        return False


def solution_source(submission: Submission, exercise: Exercise) -> str:
    """The learner's cell for an exercise; SubmissionError if it is missing or no plain Python.

    Of several cells with its id the last counts, as it does when the notebook is run. Nothing is
    executed: the cell is parsed.
    """
    sources = submission.sources(exercise.solution_cell)
    if not sources:
        if any(cell.grade_id == exercise.solution_cell for cell in submission.cells):
            raise SubmissionError(
                "missing", f"{exercise.solution_cell} is no code cell any more: make it one again."
            )
        raise SubmissionError(
            "missing", f"The cell {exercise.solution_cell} is not in the notebook: put it back."
        )
    source = sources[-1]
    try:
        parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SubmissionError("not Python", _say_syntax(source, error)) from None
    return source


def parse(source: str) -> ast.Module:
    """As ast.parse, without a word on stderr about doubtful code; for one thread at a time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def _cells(rows: list[Any]) -> Iterator[Cell]:
    for row in rows:
        if type(row) is not dict:
            continue
        source = row.get("source", "")
        if type(source) is list:
            source = "".join(line for line in source if type(line) is str)
        grade_id = _nested(row, "metadata", "nbgrader", "grade_id") or row.get("id")
        if type(source) is str:
            kind = str(row.get("cell_type", ""))
            yield Cell(grade_id if type(grade_id) is str else "", kind, source)


def _nested(data: Any, *keys: str) -> Any:
    for key in keys:
        data = data.get(key) if type(data) is dict else None
    return data


def _say_syntax(source: str, error: Exception) -> str:
    line = getattr(error, "lineno", None)
    if line is None:
        return "The cell cannot be read as Python."
    lines = source.splitlines()
    text = plain.clean(lines[line - 1].strip()[:80]) if 0 < line <= len(lines) else ""
    why = f" ({plain.clean(str(getattr(error, 'msg', ''))[:80])})"
    said = f"Line {line} of the cell cannot be read as Python{why}"
    said += f": `{text}`." if text else "."
    if text.startswith(("%", "!")):
        said += " Commands of the notebook (% and !) do not belong into a graded cell."
    return said
