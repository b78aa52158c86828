"""Back to what was handed out: one cell, or everything. The old files are kept in backups/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from minipaged.course.catalog import Exercise
from minipaged.course.learner.desk import Desk
from minipaged.course.learner.progress import Progress, update, write
from minipaged.course.learner.workspace import digest
from minipaged.course.submission import SubmissionError


def reset(desk: Desk, exercise: Exercise) -> list[str]:
    """Put one exercise's cell back as it was handed out; everything else in the notebook stays.

    A cell that is gone comes back above its check. ValueError if the notebook is none any more.
    """
    desk.require_progress("reset")
    path, name = desk.notebook(exercise), desk.course.notebook_of(exercise)
    notebook = _load(desk, exercise, name)
    released = json.loads((desk.course.root / name).read_text(encoding="utf-8"))
    [fresh] = [c for c in released["cells"] if _grade_id(c) == exercise.solution_cell]
    if not _put(notebook["cells"], fresh, exercise):
        return [f"{exercise.id} {exercise.name} is already as it was handed out."]
    kept = desk.place.backup(path)
    write(path, (json.dumps(notebook, indent=1, ensure_ascii=False) + "\n").encode())
    desk.record(lambda state: state.done.discard(exercise.id))
    return [
        f"{exercise.id} {exercise.name} in {name} is as it was handed out.",
        _say_kept(desk, kept, name),
        "If the notebook is open in Jupyter, load it again (File > Reload Notebook from Disk).",
    ]


def reset_all(desk: Desk) -> list[str]:
    """Put every exercise notebook back as it was handed out, and begin the progress anew."""
    desk.require_progress("reset")
    before, lines = desk.place.progress(), []
    names = [n for n in desk.course.notebooks() if n.startswith("exercises/")]
    contents = {name: (desk.course.root / name).read_bytes() for name in names}
    for name, content in contents.items():
        path = desk.place.root / name
        if path.is_file() and path.read_bytes() == content:
            continue
        if path.exists():
            lines.append(_say_kept(desk, desk.place.backup(path), name))
        path.parent.mkdir(exist_ok=True)
        write(path, content)
        lines.append(f"{name} is as it was handed out.")
    anew = Progress(current=desk.course.catalog.exercises[0].id, files=before.files)
    anew.files.update({name: digest(content) for name, content in contents.items()})
    if (before.current, before.done, before.hints) != (anew.current, set(), {}):
        kept = desk.place.backup(desk.place.state)
        lines += [_say_kept(desk, kept, desk.place.state.name), "The progress begins anew."]
    update(desk.place.state, lambda state: _become(state, anew))
    return lines or ["Everything is already as it was handed out."]


def _become(state: Progress, other: Progress) -> None:
    state.current, state.done, state.hints = other.current, other.done, other.hints
    state.files = other.files


def _say_kept(desk: Desk, kept: Path, name: str) -> str:
    return f"Yours is kept: copy {kept.relative_to(desk.place.root)} over {name} to have it back."


def _load(desk: Desk, exercise: Exercise, name: str) -> dict[str, Any]:
    """The notebook as JSON; ValueError says what to do if it is none."""
    try:
        desk.read(exercise)
    except SubmissionError as error:
        raise ValueError(f"{name}: {error}") from None
    return json.loads(desk.notebook(exercise).read_bytes().decode("utf-8-sig"))


def _put(cells: list[Any], fresh: dict[str, Any], exercise: Exercise) -> bool:
    """Put the released cell in place; False if it stands there already."""
    at = [number for number, cell in enumerate(cells) if _grade_id(cell) == exercise.solution_cell]
    if at:
        if len(at) == 1 and _source(cells[at[0]]) == _source(fresh):
            return False
        cells[at[-1]] = fresh
        for number in reversed(at[:-1]):  # copies of it would be run, too
            del cells[number]
        return True
    checks = [n for n, cell in enumerate(cells) if _grade_id(cell) == exercise.check_cell]
    cells.insert(checks[0] if checks else len(cells), fresh)
    return True


def _grade_id(cell: Any) -> str:
    """As submission.read finds it."""
    if type(cell) is not dict:
        return ""
    metadata = cell.get("metadata")
    mark = metadata.get("nbgrader") if type(metadata) is dict else None
    known = mark.get("grade_id") if type(mark) is dict else None
    return str(known or cell.get("id") or "")


def _source(cell: dict[str, Any]) -> tuple[str, str]:
    source = cell.get("source", "")
    return str(cell.get("cell_type")), "".join(source) if type(source) is list else str(source)
