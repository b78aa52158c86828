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
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from minipaged.course import guard, isolate, needs, reply
from minipaged.course.reply import (
    TIME_OVER,
    NoAnswer,
    ended_early,
    read_answer,
    say_exit,
    unreadable,
)
from minipaged.course.script import Case, Observation, to_json

if TYPE_CHECKING:
    from minipaged.course.checks.base import Check

__all__ = [
    "TIME_OVER",
    "Limits",
    "NoAnswer",
    "ended_early",
    "environment",
    "limits_for",
    "observe",
    "read_answer",
    "say_exit",
    "time_over",
    "unreadable",
]
_PACKAGE_ROOT = Path(__file__).resolve().parents[2]
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from minipaged.course.worker import main; main()"
)
_START_SECONDS = 120.0  # torch, from a cold disk
_TENSOR_BYTES = 4 * 2**30
_MAX_PROCESSES = 256  # threads count, too
_SHORTEST_NAP, _LONGEST_NAP = 0.001, 0.02  # seconds between two looks at a worker


@dataclass(frozen=True, slots=True)
class Limits:
    """What one exercise may use.

    seconds, memory_bytes: of the learner's code and the scripts, beside what the worker itself
    takes. tensors: the scripts use tensors; the worker loads torch before the time begins.
    guarded: the learner's cell imports the modules in guard.py only; off, the rest of the sandbox
    can be tried alone. The two sizes hold only where the system offers it (not Windows; macOS
    ignores memory_bytes). All but the time is of one process, and a cell may start others: they
    are counted where the system counts them by namespace (see worker.py), else they are not.
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


def limits_for(check: Check, base: Limits | None = None, *, seconds: float | None = None) -> Limits:
    """The limits for an exercise with this check; base: instead of the usual ones.

    Torch works in 60 s and 4 GiB. A base keeps its own seconds, and gets as much memory. seconds:
    for an exercise without tensors.
    """
    if not check.tensors:
        base = base or Limits()
        return base if seconds is None else dataclasses.replace(base, seconds=seconds)
    base = base or Limits(seconds=60.0)
    memory_bytes = max(base.memory_bytes, _TENSOR_BYTES)
    return dataclasses.replace(base, tensors=True, memory_bytes=memory_bytes)


def observe(
    cells: Sequence[tuple[str, str]],
    name: str,
    cases: Sequence[Case],
    limits: Limits,
    *,
    hidden: Sequence[Case] = (),
    stop: threading.Event | None = None,
) -> list[list[Observation]]:
    """Run the cells (name, source) in a process of their own, then every case's script.

    The last cell is the learner's, those before it the release's. hidden: cases whose scripts the
    process gets only when it has answered the others. stop: ends the process when it is set.
    Returns one observation per operation, of `cases`, then of `hidden`. NoAnswer says why there are
    none: a cell that fails, a name not defined or not the learner's own, a loop without end, a
    process that ended itself, a system without Triton. Cost: a process start, about 0.1 s; with
    tensors 2 s.
    """
    if why := needs.lacking(needs.needed_by(source for _, source in cells)):
        raise NoAnswer("needs Triton", why)
    request = {
        "cells": [list(cell) for cell in cells],
        "name": name,
        "scripts": [to_json(case.operations) for case in cases],
        "importable": limits.importable(),
        "tensors": limits.tensors,
        "limits": {**limits.as_resources(), "RLIMIT_NPROC": _MAX_PROCESSES},
        "more": bool(hidden),
    }
    seen: list[list[Observation]] = []
    with _worker(limits, stop or threading.Event()) as worker:
        seen += read_answer(worker.ask(request), name, cases)
        if hidden:
            scripts = [to_json(case.operations) for case in hidden]
            seen += read_answer(worker.ask(scripts), name, hidden)
    return seen


@contextlib.contextmanager
def _worker(limits: Limits, stop: threading.Event) -> Iterator[_Worker]:
    """A worker that has been started; all that is left of it is ended behind.

    Files, not pipes: a pipe stays open as long as any child of the worker holds it, and what the
    worker does not read from it holds up who writes. Each is opened twice, as who shares a handle
    shares the position in the file.
    """
    how = "isolated" if isolate.available() else "grouped"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        names = ("home", "started", "told", "said")
        home, started, told, said = (Path(folder, name) for name in names)
        home.mkdir()
        with (
            told.open("wb") as to,
            told.open("rb") as asked,
            said.open("wb") as out,
            said.open("rb") as answers,
        ):
            process = subprocess.Popen(
                [sys.executable, "-I", "-X", "utf8", "-c", _START, _PACKAGE_ROOT, started, how],
                stdin=asked,
                stdout=out,
                stderr=subprocess.DEVNULL,
                cwd=home,
                env=environment(str(home)),
                start_new_session=True,
            )
            try:
                yield _Worker(process, to, answers, started, limits, stop)
            finally:
                _end(process)


@dataclass(slots=True)
class _Worker:
    """A process, what it is told and what it has said. late: when its time is over, 0.0 before it
    begins."""

    process: subprocess.Popen[bytes]
    to: IO[bytes]
    answers: IO[bytes]
    started: Path
    limits: Limits
    stop: threading.Event
    late: float = 0.0

    def ask(self, request: object) -> bytes:
        """The worker's next line. NoAnswer if none comes before its time is over."""
        self.to.write(json.dumps(request).encode() + b"\n")
        self.to.flush()
        if not self.late:
            if self.limits.tensors:
                self._await_start()
            self.late = time.monotonic() + self.limits.seconds
        text, nap = b"", _SHORTEST_NAP
        while not text.endswith(b"\n") and len(text) <= self.limits.answer_bytes:
            has_ended = self.process.poll() is not None  # before the look at what it has said
            text += self.answers.read(self.limits.answer_bytes)
            if has_ended:
                break
            if not text.endswith(b"\n"):
                self._require_time()
                time.sleep(nap)
            nap = min(nap * 1.2, _LONGEST_NAP)
        if not text:
            raise ended_early(say_exit(self.process.returncode))
        return text

    def _require_time(self) -> None:
        if self.stop.is_set():
            raise reply.stopped()
        if time.monotonic() > self.late:
            raise time_over(self.limits)

    def _await_start(self) -> None:
        """Until the worker has loaded what it needs, or ended, or is hopelessly late."""
        late = time.monotonic() + _START_SECONDS
        while not self.started.exists() and self.process.poll() is None:
            if self.stop.is_set() or time.monotonic() > late:
                return
            time.sleep(0.01)


def environment(folder: str) -> dict[str, str]:
    """A worker's environment: nothing of the grader's but what a process cannot do without."""
    kept = {key: os.environ[key] for key in ("PATH", "SYSTEMROOT") if key in os.environ}
    own = {"HOME": folder, "TMPDIR": folder, "TEMP": folder, "LANG": "C.UTF-8"}
    # a kernel is judged by what it computes, which Triton's interpreter finds out without a GPU
    return {**kept, **own, "OMP_NUM_THREADS": "1", "TRITON_INTERPRET": "1"}


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the worker and its children (where there are process groups, that is everywhere but on
    Windows), and wait for it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def time_over(limits: Limits) -> NoAnswer:
    """The worker used up its time."""
    return reply.time_over(limits.seconds)
