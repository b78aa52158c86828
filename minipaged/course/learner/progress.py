"""A learner's state: one small text file, minipaged.txt, at the top of the workspace.

Lines in UTF-8; empty ones and those that begin with # do not count. Every other line is one entry:

    format 1             which form the file has; must be there
    current ID           the exercise that the learner is at
    done ID              an exercise whose latest check passed
    hints ID N           its hints 1 … N have been shown
    file SHA256 PATH     a notebook (.ipynb) as it was laid out; `minipaged init` refreshes it only
                         while it still has this sha256: while the learner has not changed it

The file is always replaced as a whole (written beside, then renamed), so it is never half written.
Whoever changes it holds a lock file meanwhile, minipaged.txt.lock: what two commands record at the
same moment is both kept.
"""

from __future__ import annotations

import contextlib
import copy
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from minipaged.course.catalog import NUM_HINTS

NAME = "minipaged.txt"
# a disk may stall for seconds; a lock that is older than the second was left behind
LOCK_SECONDS, STALE_SECONDS = 20.0, 10.0
HEADER = """\
# Where you are in the course. minipaged keeps this file: it is rewritten by its commands, and
# comments of yours are not kept. Each line is one entry:
#
#   format 1           which form the file has
#   current ID         the exercise that you are at
#   done ID            an exercise whose latest check passed
#   hints ID N         its hints 1 to N have been shown
#   file SHA256 PATH   a notebook as it was laid out; `minipaged init` refreshes it only while it
#                      still has this sha256, that is, while you have not changed it
#
# If the file is ever damaged: mend it by hand, or rename it and run `minipaged init` on this
# folder. That keeps your notebooks and begins the progress anew.

"""


class ProgressError(ValueError):
    """The state file cannot be read; the message says where it is wrong and what to do."""


@dataclass(slots=True)
class Progress:
    """What the file holds. current: "" if there is none. done: ids. hints: id to how many were
    shown. files: path in the workspace, with /, to the sha256 in hex as it was laid out."""

    current: str = ""
    done: set[str] = field(default_factory=set)
    hints: dict[str, int] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


def load(path: Path) -> Progress:
    """Read a state file; ProgressError if it is damaged (it stays as it is)."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _damaged(path, " is not text in UTF-8") from None
    progress, has_format = Progress(), False
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        word, _, rest = line.strip().partition(" ")
        if word == "format" and not has_format:
            has_format = _require_format(path, rest.strip())
        elif not _take(progress, word, rest.strip()):
            raise _damaged(path, f", line {number}: {line.strip()[:60]!r} is no entry of it")
    if not has_format:
        raise _damaged(path, " has no line `format 1`")
    return progress


def save(path: Path, progress: Progress) -> None:
    """Replace the state file."""
    lines = ["format 1"]
    lines += [f"current {progress.current}"] if progress.current else []
    lines += [f"done {exercise_id}" for exercise_id in sorted(progress.done)]
    lines += [
        f"hints {exercise_id} {count}" for exercise_id, count in sorted(progress.hints.items())
    ]
    lines += [f"file {digest} {name}" for name, digest in sorted(progress.files.items())]
    write(path, (HEADER + "\n".join(lines) + "\n").encode())


def update(path: Path, change: Callable[[Progress], object]) -> Progress:
    """Read the file as it is now, change it, replace it; returns what it holds then.

    Others who do so at the same time wait. change may be called twice, each time on the state as
    it was read. ProgressError if somebody holds the lock for too long.
    """
    progress, is_changed = _changed(path, change)
    if is_changed:
        with _locked(path):
            progress, is_changed = _changed(path, change)
            if is_changed:
                save(path, progress)
    return progress


def _changed(path: Path, change: Callable[[Progress], object]) -> tuple[Progress, bool]:
    progress = load(path)
    before = copy.deepcopy(progress)
    change(progress)
    return progress, progress != before


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock file beside `path`, which can be made only once."""
    lock = path.with_name(path.name + ".lock")
    holder, late = None, time.monotonic() + LOCK_SECONDS
    while True:
        try:
            lock.open("xb").close()
            break
        except FileExistsError:
            now = _made(lock)
        if now != holder:  # another one's turn: the wait begins anew
            holder, late = now, time.monotonic() + LOCK_SECONDS
        if now is not None and time.time() - now > STALE_SECONDS:
            lock.unlink(missing_ok=True)  # left behind by a command that was ended
        elif time.monotonic() > late:
            raise ProgressError(
                f"another command has been writing to {path} for {LOCK_SECONDS:g} seconds: try "
                f"again in {STALE_SECONDS:g} seconds, or remove {lock} if nothing else is running"
            )
        else:
            time.sleep(0.005)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _made(lock: Path) -> float | None:
    """When the lock was made, in seconds as time.time(); None if it has just gone."""
    try:
        return lock.stat().st_mtime
    except FileNotFoundError:
        return None


def write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: beside it, then renamed over it."""
    path = path.resolve()
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)  # noqa: PTH105  (one name for tests to break)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def _take(progress: Progress, word: str, rest: str) -> bool:
    """Add one entry; False if it is none."""
    match = re.fullmatch(_ENTRIES[word], rest) if word in _ENTRIES else None
    if match is None or (word == "current" and progress.current):
        return False
    if word == "current":
        progress.current = rest
    elif word == "done":
        progress.done.add(rest)
    elif word == "hints":
        progress.hints[match[1]] = int(match[2])
    else:
        progress.files[match[2]] = match[1]
    return True


_ID = r"\d\d\.[1-9]"
_ENTRIES = {
    "current": _ID,
    "done": _ID,
    "hints": rf"({_ID}) ([1-{NUM_HINTS}])",
    "file": r"([0-9a-f]{64}) (\S.*\.ipynb)",
}


def _require_format(path: Path, version: str) -> bool:
    if version.isdecimal() and int(version) > 1:
        raise ProgressError(
            f"{path} was written by a later version of minipaged (format {version}): "
            "pip install -U minipaged"
        )
    return version == "1"


def _damaged(path: Path, what: str) -> ProgressError:
    has_top = path.read_bytes().startswith(HEADER.partition("\n")[0].encode())
    mend = "mend it (its top says how), or rename it" if has_top else "rename it"
    return ProgressError(
        f"{path}{what}: {mend} and run "
        f"`minipaged init {path.parent}`, which keeps your notebooks and begins the progress anew"
    )
