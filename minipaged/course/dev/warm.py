"""Warm workers: what sandbox.observe does, in milliseconds instead of a process start.

A helper process imports once what a worker needs, and forks a child for every request. The child
is a worker like any other: own limits, an own empty folder, output that leads nowhere, killed with
all that it started once it has answered or its time is over.

For the course's own samples and mutants, of which there are hundreds. Submissions are graded in the
sandbox, where one of them leaves nothing behind for the next. Where there is no fork (Windows) the
sandbox is used here too.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from minipaged.course import sandbox, worker
from minipaged.course.sandbox import Limits
from minipaged.course.script import Case, Observation, to_json

WARM_LIMITS = Limits(seconds=5.0)
_START_SECONDS = 120.0  # torch, from a cold disk
_PATIENCE = 10.0  # seconds that the helper may be late before it is given up
_PACKAGE_ROOT = str(Path(__file__).resolve().parents[3])
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); "  # a script's own folder would come first
    "import minipaged.course.dev.warm as warm; warm.serve()"
)
# how a reply of the helper begins; an answer or the exit code comes behind it
_ANSWERED, _TIME_OVER, _ENDED, _TOO_LONG = b"A", b"T", b"E", b"L"


class WarmWorker:
    """One helper process; use it in a `with`, from one thread at a time.

    tensors: the helper loads torch (over a second, once), so that no child has to. limits: of each
    request that brings none of its own.
    """

    def __init__(self, tensors: bool = False, limits: Limits = WARM_LIMITS) -> None:
        self.tensors = tensors
        self.limits = dataclasses.replace(limits, tensors=True) if tensors else limits
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        if hasattr(os, "fork"):
            self._start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()

    def observe(
        self,
        cells: Sequence[tuple[str, str]],
        name: str,
        cases: Sequence[Case],
        limits: Limits | None = None,
    ) -> list[list[Observation]]:
        """As sandbox.observe, NoAnswer included. Cost: a fork, a tenth of a process start.

        ChildProcessError if the helper cannot be started.
        """
        limits = limits or self.limits
        if not hasattr(os, "fork"):
            return sandbox.observe(cells, name, cases, limits)
        request = {
            "cells": [list(cell) for cell in cells],
            "name": name,
            "scripts": [to_json(case.operations) for case in cases],
            "importable": limits.importable(),
            "limits": limits.as_resources(),
            "seconds": limits.seconds,
            "answer_bytes": limits.answer_bytes,
        }
        text = self._talk(json.dumps(request).encode(), limits)
        return sandbox.read_answer(text, name, cases)

    def _talk(self, request: bytes, limits: Limits) -> bytes:
        """What the child wrote; a helper that does not answer is replaced by a new one."""
        if self._control is None:
            self._start()
        assert self._control is not None
        self._control.settimeout(limits.seconds + _PATIENCE)
        try:
            _send(self._control, request)
            reply = _receive(self._control)
        except OSError:
            reply = None
        if reply is None:
            self._stop()
            raise sandbox.ended_early("the process that started it went with it")
        kind, text = reply[:1], reply[1:]
        if kind == _TIME_OVER:
            raise sandbox.time_over(limits)
        if kind == _ENDED:
            raise sandbox.ended_early(sandbox.say_exit(int(text)))
        if kind == _TOO_LONG:
            raise sandbox.unreadable()
        return text

    def _start(self) -> None:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._control, theirs = socket.socketpair()
        arguments = [_PACKAGE_ROOT, str(theirs.fileno()), "tensors" if self.tensors else ""]
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-X", "utf8", "-c", _START, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=self._folder.name,
                env=sandbox.environment(self._folder.name),
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._control.settimeout(_START_SECONDS)
        try:
            started = _receive(self._control) == _ANSWERED
        except OSError:
            started = False
        if not started:
            self._stop()
            raise ChildProcessError("a warm worker did not start: run `minipaged doctor`")

    def _stop(self) -> None:
        """End the helper: it ends its child when nobody is there to answer to."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(2.0)
            self._process.kill()
            self._process.wait()
        if self._folder is not None:
            self._folder.cleanup()
        self._control = self._process = self._folder = None


def serve() -> None:
    """The helper: import, then a child a request, until the other side is gone."""
    control = socket.socket(fileno=int(sys.argv[2]))
    if sys.argv[3]:
        worker.load_tensors(with_triton=True)
        importlib.import_module("torch").set_num_threads(1)
    gc.collect()
    gc.freeze()  # or every collection in a child would copy all of our pages
    _send(control, _ANSWERED)
    while (request := _receive(control)) is not None:
        _send(control, _one(json.loads(request), control))


def _one(request: dict[str, Any], control: socket.socket) -> bytes:
    """Fork a child for one request; returns the reply."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        out, inside = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                control.close()
                os.close(out)
                _child(request, inside, folder)
            finally:
                os._exit(1)
        os.close(inside)
        try:
            return _wait(pid, out, request, control)
        finally:
            os.close(out)
            _end(pid)


def _child(request: dict[str, Any], out: int, folder: str) -> None:
    """Answer the request; this is the process that the learner's code runs in."""
    os.setsid()
    os.chdir(folder)
    os.environ.update(HOME=folder, TMPDIR=folder, TEMP=folder)
    tempfile.tempdir = None  # it was looked up in the helper already
    worker.limit(request["limits"])
    with os.fdopen(out, "w", encoding="ascii") as file:
        asked = (request[key] for key in ("cells", "name", "scripts", "importable"))
        file.write(json.dumps(worker.answer(*asked)))
    os._exit(0)


def _wait(pid: int, out: int, request: dict[str, Any], control: socket.socket) -> bytes:
    """The reply: what the child wrote until it ended, or why there is nothing."""
    deadline = time.monotonic() + request["seconds"]
    text, code, is_open = b"", None, True
    while is_open or (not text and code is None):
        left = deadline - time.monotonic()
        if left <= 0:
            return _TIME_OVER
        # a pipe stays open as long as any child of the child holds it, so its end is no proof
        pause = 0.0 if code is not None else min(left, 0.02 if is_open else 0.001)
        watched: list[Any] = [control, out] if is_open else [control]
        ready = select.select(watched, [], [], pause)[0]
        if control in ready:
            sys.exit()  # nobody is there to answer to
        if out in ready:
            part = os.read(out, 2**16)
            text, is_open = text + part, bool(part)
            if len(text) > request["answer_bytes"]:
                return _TOO_LONG
        elif code is not None:
            break
        else:
            code = _exit_code(pid)
    return _ANSWERED + text if text else _ENDED + str(code).encode()


def _exit_code(pid: int) -> int | None:
    """The child's exit code, a signal's number negative; None while it runs."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _end(pid: int) -> None:
    """Kill the child and all that it started, and wait for it."""
    for kill in (os.killpg, os.kill):  # it may not have come to lead a group
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _send(control: socket.socket, message: bytes) -> None:
    control.sendall(len(message).to_bytes(8, "big") + message)


def _receive(control: socket.socket) -> bytes | None:
    """One whole message; None if the other side is gone. TimeoutError as the socket is set."""
    length = _exactly(control, 8)
    return None if length is None else _exactly(control, int.from_bytes(length, "big"))


def _exactly(control: socket.socket, count: int) -> bytes | None:
    parts: list[bytes] = []
    while count:
        part = control.recv(min(count, 2**20))
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
