"""The process that a submission's code runs in: it carries scripts out and reports plain data.

It is told the cells, the name that they define and the scripts; what is expected it never hears.
So there is nothing here to be talked out of a verdict: whoever answers right has answered, and
whoever stops the process, or writes nonsense where the answer goes, has not.

stdin: one JSON object (cells, name, scripts, importable, tensors, limits). stdout: one JSON object
(see `answer`). Standard library and plain data only; torch where the scripts use tensors.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import linecache
import os
import sys
import time
import types
from collections.abc import Collection
from pathlib import Path
from typing import Any

from minipaged.course import guard, isolate, script


def main() -> None:
    """Read the request, answer it, end at once, whatever threads are still running.

    Arguments: the folder to import minipaged from, the file to make when the learner's time
    begins, and "isolated" for namespaces of its own.
    """
    _, _, started, how = sys.argv
    if how == "isolated":
        isolate.enter()
    request = json.loads(sys.stdin.buffer.read())
    out = _private_stdout()
    if request["tensors"]:
        importlib.import_module("torch")
    sys.argv = [""]
    Path(started).touch()
    limit(request["limits"])
    with contextlib.suppress(OSError), os.fdopen(out, "w", encoding="ascii") as file:
        asked = (request[key] for key in ("cells", "name", "scripts", "importable"))
        file.write(json.dumps(answer(*asked)))
    os._exit(0)


def answer(
    cells: list[list[str]],
    name: str,
    scripts: list[list[Any]],
    importable: Collection[str] | None = None,
) -> dict[str, Any]:
    """Run the cells, then every script beside what they define.

    importable: the modules that the last cell, the learner's, may import (see guard); None for
    all. The cells before it are the release's and may import anything.

    Either {"observations": [[one per operation] per script]}, or {"cell": …, "fault": …} if a
    cell failed, or {"undefined": name} if nothing of that name was defined, or {"borrowed": name}
    if it is not the learner's work but ours.
    """
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    for number, (cell_name, source) in enumerate(cells, 1):
        if number == len(cells) and importable is not None:
            guard.install(importable, module.__dict__)
        fault = _run_cell(f"<cell {cell_name}>", source, module)
        if fault is not None:
            return {"cell": cell_name, "fault": fault}
    if not hasattr(module, name):
        return {"undefined": name}
    subject = getattr(module, name)
    if script.is_ours(subject):
        return {"borrowed": name}
    return {"observations": [script.run(script.from_json(rows), subject) for rows in scripts]}


def limit(limits: dict[str, int]) -> None:
    """Ask the system to hold this process to its limits, counted from what it has used so far.

    limits: by the names of the resource module. What the system does not know is left out.
    """
    try:
        import resource
    except ImportError:  # Windows has none of them
        return
    used = {"RLIMIT_AS": _held_bytes(), "RLIMIT_CPU": int(time.process_time())}
    for name, value in limits.items():
        most = value + used.get(name, 0)
        with contextlib.suppress(AttributeError, ValueError, OSError):
            resource.setrlimit(getattr(resource, name), (most, most))


def _held_bytes() -> int:
    """The address space of this process; 0 where the system does not tell (macOS)."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGESIZE")


def _run_cell(filename: str, source: str, module: types.ModuleType) -> script.Fault | None:
    lines = source.splitlines(keepends=True)
    linecache.cache[filename] = (len(source), None, lines, filename)
    paper = script.Paper()
    try:
        with contextlib.redirect_stdout(paper), contextlib.redirect_stderr(paper):
            exec(compile(source, filename, "exec", dont_inherit=True), module.__dict__)
    except BaseException as error:
        return script.describe(error, __file__)
    return None


def _private_stdout() -> int:
    """A handle on stdout that prints do not reach; 0, 1 and 2 lead nowhere from now on."""
    out, nowhere = os.dup(1), os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    return out
