"""Running a worker: one process for one exercise of one submission, and what came of it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from minipaged.course.script import (
    Case,
    Fault,
    Observation,
    read_fault,
    read_observation,
    to_json,
)
from minipaged.course.verdict import MISSING, ONLY_THIS_CELL, say_fault

_PACKAGE_ROOT = Path(__file__).resolve().parents[2]
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from minipaged.course.worker import main; main()"
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one exercise may use. The last two hold only where the system offers it (not Windows;
    macOS ignores memory_bytes)."""

    seconds: float = 10.0
    memory_bytes: int = 2**30
    answer_bytes: int = 16 * 2**20

    def as_resources(self) -> dict[str, int]:
        """By the names of Python's resource module."""
        return {
            "RLIMIT_AS": self.memory_bytes,
            "RLIMIT_FSIZE": self.answer_bytes,
            "RLIMIT_CPU": int(self.seconds) + 1,
            "RLIMIT_CORE": 0,
        }


class NoAnswer(Exception):
    """The worker gave no observations. status: in two words. The message says more."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def observe(
    cells: Sequence[tuple[str, str]], name: str, cases: Sequence[Case], limits: Limits
) -> list[list[Observation]]:
    """Run the cells (name, source) in a process of their own, then every case's script.

    Returns one observation per operation. NoAnswer says why there are none: a cell that fails, a
    name not defined or not the learner's own, a loop without end, a process that ended itself.
    Cost: a process start, about 0.1 s.
    """
    request = {
        "cells": [list(cell) for cell in cells],
        "name": name,
        "scripts": [to_json(case.operations) for case in cases],
        "limits": limits.as_resources(),
    }
    answer = _parse(_talk(json.dumps(request).encode(), limits))
    if "fault" in answer:
        raise NoAnswer("cell fails", _say_cell_fault(answer))
    if "undefined" in answer:
        raise NoAnswer("undefined", f"The cell defines no {name}.")
    if "borrowed" in answer:
        raise NoAnswer("not your own", f"{name} is minipaged's own, not yours: define it yourself.")
    return _observations(answer, [len(case.operations) for case in cases])


def _talk(request: bytes, limits: Limits) -> bytes:
    """Start the worker, wait for it, end all that is left of it, and return what it wrote.

    Files, not pipes: a pipe stays open as long as any child of the worker holds it.
    """
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        tempfile.TemporaryFile() as told,
        tempfile.TemporaryFile() as said,
    ):
        told.write(request)
        told.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-I", "-X", "utf8", "-c", _START, str(_PACKAGE_ROOT)],
            stdin=told,
            stdout=said,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=_environment(folder),
            start_new_session=True,
        )
        try:
            code = process.wait(limits.seconds)
        except subprocess.TimeoutExpired:
            raise NoAnswer(
                "time limit",
                f"No answer within {limits.seconds:g} seconds: is there a loop that never ends?",
            ) from None
        finally:
            _end(process)
        return _read(said, code, limits)


def _read(said: IO[bytes], code: int, limits: Limits) -> bytes:
    said.seek(0)
    text = said.read(limits.answer_bytes + 1)
    if not text:
        how = f"exit code {code}" if code >= 0 else f"killed by signal {-code}"
        raise NoAnswer(
            "ended early",
            f"The process ended before it had answered ({how}). Nothing was checked, so nothing "
            "is passed.",
        )
    return text


def _environment(folder: str) -> dict[str, str]:
    """Nothing of the grader's own environment but what a process needs to start."""
    kept = {key: os.environ[key] for key in ("PATH", "SYSTEMROOT") if key in os.environ}
    return {**kept, "HOME": folder, "TMPDIR": folder, "TEMP": folder, "LANG": "C.UTF-8"}


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
        raise _unreadable() from None
    if type(answer) is not dict:
        raise _unreadable()
    return answer


def _observations(answer: dict[str, Any], counts: list[int]) -> list[list[Observation]]:
    try:
        seen = [[read_observation(row) for row in rows] for rows in answer["observations"]]
    except (KeyError, TypeError, ValueError, RecursionError):
        raise _unreadable() from None
    if [len(rows) for rows in seen] != counts:
        raise _unreadable()
    return seen


def _say_cell_fault(answer: dict[str, Any]) -> str:
    try:
        fault: Fault = read_fault(answer["fault"])
    except (TypeError, ValueError, RecursionError):
        raise _unreadable() from None
    advice = f" {ONLY_THIS_CELL}" if fault.kinds[0] in MISSING else ""
    return say_fault(fault) + advice


def _unreadable() -> NoAnswer:
    return NoAnswer(
        "no answer",
        "The process wrote something else where its answer belongs. Nothing was checked, so "
        "nothing is passed.",
    )
