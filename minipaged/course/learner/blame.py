"""Which of the learner's own parts is at fault when the engine fails on them, and at which line."""

from __future__ import annotations

import linecache
import re
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import TypeVar

from minipaged.cache.manager import InvariantError
from minipaged.course import wrapped
from minipaged.course.mine import Part

T = TypeVar("T")
_MAX_FOUND = 3


class PartFailure(Exception):
    """The engine failed on own parts; the message names them and says how it failed."""


class _Endless(Exception):
    """Own code did not come to an end in time; the message says where it was. cell: the id of the
    cell that it was in, "" if it was in none."""

    def __init__(self, said: str, cell: str) -> None:
        super().__init__(said)
        self.cell = cell


def attempt(
    run: Callable[[Sequence[Part]], T], parts: Sequence[Part], where: str, seconds: float
) -> T:
    """run(parts); if that fails, each own part is tried alone, and those that fail are named.

    where: for the message. seconds: for one run; then it is given up, as own code may loop without
    end. PartFailure says what failed.
    """
    own = [part for part in parts if part.is_own]
    try:
        return _in_time(run, parts, seconds)
    except _Endless as endless:
        at_fault = [part for part in own if part.exercise.solution_cell == endless.cell] or own
        raise PartFailure(f"FAILED  {_names(at_fault)}, {where}:\n  {endless}") from None
    except Exception as error:
        together = error
    alone = [(part, _error(run, part, seconds)) for part in own]
    said = [_say(part, where, error) for part, error in alone if error is not None]
    raise PartFailure(
        "\n".join(said)
        or f"FAILED  {_names(own)}: each works alone, but together they fail {where}:\n"
        f"  {_reason(together)}"
    )


def _error(run: Callable[[Sequence[Part]], object], part: Part, seconds: float) -> Exception | None:
    try:
        _in_time(run, [part], seconds)
    except Exception as error:
        return error
    return None


def _in_time(run: Callable[[Sequence[Part]], T], parts: Sequence[Part], seconds: float) -> T:
    """run(parts) in a thread, which is left behind if it does not end: it ends with the process."""
    values: list[T] = []
    errors: list[Exception] = []

    def work() -> None:
        try:
            values.append(run(parts))
        except Exception as error:
            errors.append(error)
        except BaseException as error:  # own code may raise what nobody catches
            errors.append(_as_exception(error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        frame = sys._current_frames().get(thread.ident or 0)
        line, cell = _own_line(traceback.walk_stack(frame)) if frame else ("", "")
        asked = "is there a loop that never ends?"
        raise _Endless(f"no end within {seconds:g} seconds: {asked}{line}", cell)
    if errors:
        raise errors[0]
    return values[0]


def _as_exception(error: BaseException) -> Exception:
    """SystemExit, or a class of one's own, as an error like any other: with its lines and notes."""
    own = RuntimeError(f"own code raised {type(error).__name__}, which ends a program: {error}")
    for note in getattr(error, "__notes__", []):
        own.add_note(note)
    return own.with_traceback(error.__traceback__)


def _say(part: Part, where: str, error: Exception) -> str:
    return f"FAILED  {_names([part])} ({part.where}), {where}:\n  {_reason(error)}"


def _names(parts: Sequence[Part]) -> str:
    return ", ".join(f"{part.exercise.id} {part.exercise.name}" for part in parts)


def _reason(error: Exception) -> str:
    """What went wrong and, if it was there, the learner's own line."""
    step = ", ".join(getattr(error, "__notes__", []))
    raised = wrapped.unwrapped(error)
    kind = "" if isinstance(raised, AssertionError | _Endless) else f"{type(raised).__name__}: "
    said = f"{step}{': ' if step else ''}{kind}{_cut(raised)}"
    line, _ = _own_line(reversed(wrapped.frames_of(error)))
    return said + line


def _cut(error: BaseException) -> str:
    """Its message; of what the ledger found, the beginning: one mistake breaks much at once."""
    found = (
        str(error).split("; ") if isinstance(error, InvariantError) else [wrapped.message_of(error)]
    )
    more = [f"… and {len(found) - _MAX_FOUND} more"] if len(found) > _MAX_FOUND else []
    return "; ".join(found[:_MAX_FOUND] + more)


def _own_line(frames: Iterable[tuple[FrameType, int]]) -> tuple[str, str]:
    """The first of these frames, deepest first, that is in a cell of the learner's: its line in
    words, and the cell's id; both "" if there is none."""
    for frame, line in frames:
        filename = frame.f_code.co_filename
        if filename.startswith("<cell "):
            cell = filename.removeprefix("<cell ").removesuffix(">")
            source = linecache.getline(filename, line).strip()
            return f"\n  in line {line} of {_say_cell(cell)}: `{source}`", cell
    return "", ""


def _say_cell(cell: str) -> str:
    """ "the cell of 03.1" for ex-03-1; a given cell by its id."""
    numbers = re.fullmatch(r"ex-(\d\d)-(\d)", cell)
    return f"the cell of {numbers[1]}.{numbers[2]}" if numbers else f"the cell {cell}"
