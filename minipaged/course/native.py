"""A kernel checked once more, compiled and on a GPU: the visible cases, in a fresh process.

The usual check runs kernels in Triton's interpreter, which any machine can. What it cannot show is
whether the compiler takes the kernel, and what threads do that really run at the same time. Cases
whose memory is made for the interpreter (far pools) are left out.

    minipaged check 11.3 --gpu          or, in a notebook, check_on_gpu("11.3", paged_decode)
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from minipaged.course import needs, plain, reply, script, selfcontained, shipped, worker
from minipaged.course.catalog import Exercise, catalog
from minipaged.course.checks.base import Check, check_of
from minipaged.course.outcome import outcome
from minipaged.course.script import Case

Cells = Sequence[tuple[str, str]]
NO_GPU = "torch sees no GPU here, so the kernel was not compiled and run on one."
_LENT_TO_THE_INTERPRETER = "far_pool"
_SECONDS = 600.0  # each shape is compiled anew, some seconds each
_PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from minipaged.course.native import main; main()"
)


class NoDevice(ValueError):
    """There is nothing to run the kernel on."""


def check_on_gpu(exercise_id: str, subject: Any) -> None:
    """Check a kernel's launcher that a notebook's cell defines, and print a table; one line where
    there is no GPU. Takes a minute: every shape is compiled."""
    exercise = catalog().exercise(exercise_id)
    cells = [*shipped.course().given(exercise), (exercise.solution_cell, _source(subject))]
    try:
        lines, _ = check_natively(exercise, cells)
    except NoDevice as error:
        lines = [str(error)]
    print("\n".join(lines))


def _source(subject: Any) -> str:
    source = selfcontained.cell_of(subject)
    if not source:
        raise ValueError(f"{subject!r} was not defined in a cell: run its cell first")
    return source


def check_natively(
    exercise: Exercise, cells: Cells, device: str = "cuda"
) -> tuple[list[str], bool]:
    """What to print, and whether every case passed. cells: (name, source), the learner's last.

    device: "cuda"; "cpu" is a rehearsal in the interpreter. NoDevice if there is no GPU;
    ValueError for an exercise that writes no kernel.
    """
    if exercise.needs != "triton":
        raise ValueError(f"{exercise.id} writes no kernel: --gpu is for those that do, as 11.3")
    if why := needs.lacking(exercise.needs):
        raise NoDevice(why)
    check = _for_gpu(check_of(exercise))
    cases = check.visible()
    request = {
        "cells": [list(cell) for cell in cells],
        "name": exercise.name,
        "scripts": [script.to_json(case.operations) for case in cases],
        "device": device,
    }
    try:
        seen = reply.read_answer(_ask(request), exercise.name, cases)
    except reply.NoAnswer as error:
        return [f"{exercise.id} {exercise.name} on {device}: {error}"], False
    came = outcome(exercise, check, seen, in_notebook=False, then="")
    return [f"compiled, on {device}: {came.lines[0]}", *came.lines[1:]], came.passed


def _for_gpu(check: Check) -> Check:
    """The same check, as far as a GPU can run it, and without hidden cases."""

    def fits(case: Case) -> bool:
        return all(one.target != _LENT_TO_THE_INTERPRETER for one in case.operations)

    visible = [case for case in check.visible() if fits(case)]
    return dataclasses.replace(check, visible=lambda: visible, hidden=lambda seed: [])


def _ask(request: dict[str, Any]) -> bytes:
    """The answer of a fresh process. NoDevice or NoAnswer if it has none."""
    env = {key: value for key, value in os.environ.items() if key != needs.INTERPRET}
    if request["device"] == "cpu":
        env[needs.INTERPRET] = "1"
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _START, _PACKAGE_ROOT],
            input=json.dumps(request).encode(),
            capture_output=True,
            env=env,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise reply.time_over(_SECONDS) from None
    if done.returncode:
        raise reply.ended_early(reply.say_exit(done.returncode))
    lines = done.stdout.splitlines() or [b""]
    if lines[-1] == b'{"no GPU": true}':
        raise NoDevice(NO_GPU)
    return lines[-1]


def main() -> None:
    """In the fresh process: read the request, write the answer as the last line."""
    request = json.loads(sys.stdin.buffer.read())
    # a kernel's own prints come when the process ends, from C: they must not be the last line
    out = os.dup(1)
    os.dup2(2, 1)
    came: dict[str, Any] = {"no GPU": True}
    torch = importlib.import_module("torch")
    if request["device"] != "cuda" or torch.cuda.is_available():
        plain.put_tensors_on(request["device"])
        came = worker.answer(request["cells"], request["name"], request["scripts"])
    with os.fdopen(out, "w", encoding="ascii") as file:
        file.write(json.dumps(came) + "\n")
