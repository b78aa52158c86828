"""Running a worker: one process for one exercise of one submission, and what came of it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from minipaged.course import guard, isolate
from minipaged.course.faults import MISSING, ONLY_THIS_CELL, say_fault
from minipaged.course.script import (
    Case,
    Fault,
    Observation,
    read_fault,
    read_observation,
    to_json,
)

if TYPE_CHECKING:
    from minipaged.course.checks.base import Check

_PACKAGE_ROOT = Path(__file__).resolve().parents[2]
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from minipaged.course.worker import main; main()"
)
_START_SECONDS = 120.0  # torch, from a cold disk
_TENSOR_BYTES = 4 * 2**30
TIME_OVER = "time limit"  # the status of what did not answer in time


@dataclass(frozen=True, slots=True)
class Limits:
    """What one exercise may use.

    seconds, memory_bytes: of the learner's code and the scripts, beside what the worker itself
    takes. tensors: the scripts use tensors; the worker loads torch before the time begins.
    guarded: the learner's cell imports the modules in guard.py only; off, the rest of the sandbox
    can be tried alone. The two sizes hold only where the system offers it (not Windows; macOS
    ignores memory_bytes).
    """

    seconds: float = 10.0
    memory_bytes: int = 2**30
    answer_bytes: int = 16 * 2**20
    tensors: bool = False
    guarded: bool = True

    def as_resources(self) -> dict[str, int]:
        """By the names of Python's resource module."""
        return {
            "RLIMIT_AS": self.memory_bytes,
            "RLIMIT_FSIZE": self.answer_bytes,
            "RLIMIT_CPU": int(self.seconds) + 1,
            "RLIMIT_CORE": 0,
        }

    def importable(self) -> list[str] | None:
        """The top-level modules that the learner's cell may import; None for all."""
        if not self.guarded:
            return None
        return sorted(guard.importable(self.tensors))


def limits_for(check: Check, base: Limits | None = None) -> Limits:
    """The limits for an exercise with this check; base: instead of the usual ones.

    Torch works in 60 s and 4 GiB. A base keeps its own seconds, and gets as much memory.
    """
    if not check.tensors:
        return base or Limits()
    base = base or Limits(seconds=60.0)
    memory_bytes = max(base.memory_bytes, _TENSOR_BYTES)
    return dataclasses.replace(base, tensors=True, memory_bytes=memory_bytes)


class NoAnswer(Exception):
    """The worker gave no observations. status: in two words. The message says more."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def observe(
    cells: Sequence[tuple[str, str]], name: str, cases: Sequence[Case], limits: Limits
) -> list[list[Observation]]:
    """Run the cells (name, source) in a process of their own, then every case's script.

    The last cell is the learner's, those before it the release's. Returns one observation per
    operation. NoAnswer says why there are none: a cell that fails, a name not defined or not the
    learner's own, a loop without end, a process that ended itself.
    Cost: a process start, about 0.1 s; with tensors 2 s.
    """
    request = {
        "cells": [list(cell) for cell in cells],
        "name": name,
        "scripts": [to_json(case.operations) for case in cases],
        "importable": limits.importable(),
        "tensors": limits.tensors,
        "limits": limits.as_resources(),
    }
    return read_answer(_talk(json.dumps(request).encode(), limits), name, cases)


def read_answer(text: bytes, name: str, cases: Sequence[Case]) -> list[list[Observation]]:
    """The observations in a worker's answer; NoAnswer if there are none in it."""
    answer = _parse(text)
    if "fault" in answer:
        raise NoAnswer("cell fails", _say_cell_fault(answer))
    if "undefined" in answer:
        raise NoAnswer("undefined", f"The cell defines no {name}.")
    if "borrowed" in answer:
        raise NoAnswer("not your own", f"{name} is minipaged's own, not yours: define it yourself.")
    return _observations(answer, cases)


def _talk(request: bytes, limits: Limits) -> bytes:
    """Start the worker, wait for it, end all that is left of it, and return what it wrote.

    Files, not pipes: a pipe stays open as long as any child of the worker holds it.
    """
    how = "isolated" if isolate.available() else "grouped"
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        tempfile.TemporaryFile() as told,
        tempfile.TemporaryFile() as said,
    ):
        told.write(request)
        told.seek(0)
        home, started = Path(folder, "home"), Path(folder, "started")
        home.mkdir()
        process = subprocess.Popen(
            [sys.executable, "-I", "-X", "utf8", "-c", _START, _PACKAGE_ROOT, started, how],
            stdin=told,
            stdout=said,
            stderr=subprocess.DEVNULL,
            cwd=home,
            env=environment(str(home)),
            start_new_session=True,
        )
        try:
            if limits.tensors:
                _await(started, process)
            code = process.wait(limits.seconds)
        except subprocess.TimeoutExpired:
            raise time_over(limits) from None
        finally:
            _end(process)
        return _read(said, code, limits)


def _await(started: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until the worker has loaded what it needs, or ended, or is hopelessly late."""
    late = time.monotonic() + _START_SECONDS
    while not started.exists() and process.poll() is None and time.monotonic() < late:
        time.sleep(0.01)


def _read(said: IO[bytes], code: int, limits: Limits) -> bytes:
    said.seek(0)
    text = said.read(limits.answer_bytes + 1)
    if not text:
        raise ended_early(say_exit(code))
    return text


def environment(folder: str) -> dict[str, str]:
    """A worker's environment: nothing of the grader's but what a process cannot do without."""
    kept = {key: os.environ[key] for key in ("PATH", "SYSTEMROOT") if key in os.environ}
    own = {"HOME": folder, "TMPDIR": folder, "TEMP": folder, "LANG": "C.UTF-8"}
    return {**kept, **own, "OMP_NUM_THREADS": "1"}


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the worker and its children (where there are process groups, that is everywhere but on
    Windows), and wait for it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def _parse(text: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        raise unreadable() from None
    if type(answer) is not dict:
        raise unreadable()
    return answer


def _observations(answer: dict[str, Any], cases: Sequence[Case]) -> list[list[Observation]]:
    """One observation per operation, and no value of what a script keeps: a worker reports none."""
    try:
        seen = [[read_observation(row) for row in rows] for rows in answer["observations"]]
    except (KeyError, TypeError, ValueError, RecursionError):
        raise unreadable() from None
    if [len(rows) for rows in seen] != [len(case.operations) for case in cases]:
        raise unreadable()
    for case, rows in zip(cases, seen, strict=True):
        pairs = zip(case.operations, rows, strict=True)
        if any(operation.keep and one.value is not None for operation, one in pairs):
            raise unreadable()
    return seen


def _say_cell_fault(answer: dict[str, Any]) -> str:
    try:
        fault: Fault = read_fault(answer["fault"])
    except (TypeError, ValueError, RecursionError):
        raise unreadable() from None
    advice = f" {ONLY_THIS_CELL}" if fault.kinds[0] in MISSING else ""
    return say_fault(fault) + advice


def time_over(limits: Limits) -> NoAnswer:
    """The worker used up its time."""
    return NoAnswer(
        TIME_OVER,
        f"No answer within {limits.seconds:g} seconds: is there a loop that never ends?",
    )


def ended_early(how: str) -> NoAnswer:
    """The worker ended without a word; how: as say_exit says it."""
    return NoAnswer(
        "ended early",
        f"The process ended before it had answered ({how}). Nothing was checked, so nothing is "
        "passed.",
    )


def say_exit(code: int) -> str:
    """An exit code in words; a negative one, or one above 128, stands for a signal."""
    if 0 <= code <= 128:
        return f"exit code {code}"
    return f"killed by signal {-code if code < 0 else code - 128}"


def unreadable() -> NoAnswer:
    """The worker wrote something that is no answer."""
    return NoAnswer(
        "no answer",
        "The process wrote something else where its answer belongs. Nothing was checked, so "
        "nothing is passed.",
    )
