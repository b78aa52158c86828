"""A learner's workspace: laid out by `minipaged init`, found from any folder inside it.

    DIR/minipaged.txt    the state (progress.py)
    DIR/lessons/         notebooks to read
    DIR/exercises/       notebooks to fill in
    DIR/backups/         what `minipaged reset` put aside

Laying out again is an update. What the learner changed is never touched: a file is refreshed only
while it is byte for byte what was laid out.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from pathlib import Path

from minipaged.course.learner import progress
from minipaged.course.learner.progress import NAME, Progress, write
from minipaged.course.shipped import Course


class NoWorkspace(ValueError):
    """A folder is in no workspace; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where somebody works. root: the folder with exercises/. keeps_progress: False in a checkout
    of the repository, which has no state file."""

    root: Path
    keeps_progress: bool

    @property
    def state(self) -> Path:
        """The state file (in a checkout there is none)."""
        return self.root / NAME

    def progress(self) -> Progress:
        """The state as it is now; an empty one in a checkout."""
        return progress.load(self.state) if self.keeps_progress else Progress()

    def backup(self, path: Path) -> Path:
        """Copy a file into backups/ under a new name, which no folder search takes for a notebook;
        returns the copy."""
        folder = self.root / "backups"
        folder.mkdir(exist_ok=True)
        for number in itertools.count(1):
            target = folder / f"{path.name}.backup-{number}"
            try:
                with target.open("xb") as file:
                    file.write(path.read_bytes())
            except FileExistsError:
                continue
            return target
        raise AssertionError("counting ends nowhere")


def find(start: Path | None = None) -> Place:
    """The workspace, or else the checkout, that a folder is in; NoWorkspace if it is in neither."""
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        if (folder / NAME).is_file():
            return Place(folder, keeps_progress=True)
        if is_checkout(folder):
            return Place(folder, keeps_progress=False)
    raise NoWorkspace(
        f"{start} is in no workspace: go into yours, or make one with `minipaged init DIR`"
    )


def init(folder: Path, course: Course) -> list[str]:
    """Lay out a workspace, or bring one up to date; returns a line for every notebook.

    ValueError, and nothing done, if the folder is no place for one.
    """
    _require_place(folder, course)
    folder.mkdir(parents=True, exist_ok=True)
    state = folder / NAME
    # first of all, so that whatever interrupts this leaves a workspace that can be finished
    if not state.exists():
        progress.save(state, Progress(current=course.catalog.exercises[0].id))
    known = progress.load(state).files
    lines, laid_out = [], {}
    for name, source in course.notebooks().items():
        content = source.read_bytes()
        what = _lay_out(folder / name, content, known.get(name, ""))
        lines.append(_say(what, name, is_newer=known.get(name) not in (None, digest(content))))
        if what != "kept":
            laid_out[name] = digest(content)
    progress.update(state, lambda p: p.files.update(laid_out))
    return lines


def digest(content: bytes) -> str:
    """The sha256 that the state file knows a notebook by."""
    return hashlib.sha256(content).hexdigest()


def _lay_out(target: Path, content: bytes, known: str) -> str:
    """One file; returns what was done."""
    if not target.exists():
        target.parent.mkdir(exist_ok=True)
        write(target, content)
        return "added"
    now = target.read_bytes()
    if now == content:
        return "unchanged"
    if digest(now) != known:
        return "kept"
    write(target, content)
    return "refreshed"


def _say(what: str, name: str, is_newer: bool) -> str:
    line = f"{what:9}  {name}"
    if what != "kept":
        return line
    advice = "; the course's is newer: move yours away and run this again to get it"
    return f"{line}  (you changed it{advice if is_newer else ''})"


def _require_place(folder: Path, course: Course) -> None:
    elsewhere = "give a new folder: `minipaged init DIR`"
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: {elsewhere}")
    if folder.resolve() == course.root.resolve() or is_checkout(folder):
        own = "the repository itself" if is_checkout(folder) else "the course's own folder"
        raise ValueError(f"{folder} is {own}, which nobody fills in: {elsewhere}")
    for outer in folder.resolve().parents:
        if (outer / NAME).is_file():
            raise ValueError(
                f"{folder} is inside the workspace {outer}: `minipaged init {outer}` updates that, "
                "or give a folder outside"
            )
    if folder.is_dir() and any(folder.iterdir()) and not _was_workspace(folder, course):
        raise ValueError(f"{folder} is not empty and is no workspace: {elsewhere}")


def _was_workspace(folder: Path, course: Course) -> bool:
    """A state file is there, or it was (somebody renamed a damaged one)."""
    exercises = (name for name in course.notebooks() if name.startswith("exercises/"))
    return (folder / NAME).is_file() or any((folder / name).is_file() for name in exercises)


def is_checkout(folder: Path) -> bool:
    """The folder is the top of a checkout of the repository."""
    return (folder / "minipaged/course/catalog.toml").is_file() and (folder / "solutions").is_dir()
