"""The process that a submission's code runs in: it carries scripts out and reports plain data.

It is told the cells, the name that they define and the scripts; what is expected it never hears.
So there is nothing here to be talked out of a verdict: whoever answers right has answered, and
whoever stops the process, or writes nonsense where the answer goes, has not.

stdin: one JSON object (cells, name, scripts, limits). stdout: one JSON object (see `answer`).
Standard library and plain data only.
"""

from __future__ import annotations

import contextlib
import json
import linecache
import os
import sys
import types
from typing import Any

from minipaged.course import script


def main() -> None:
    """Read the request, answer it, end at once, whatever threads are still running."""
    request = json.loads(sys.stdin.buffer.read())
    out = _private_stdout()
    _limit(request["limits"])
    text = json.dumps(answer(request["cells"], request["name"], request["scripts"]))
    with contextlib.suppress(OSError), os.fdopen(out, "w", encoding="ascii") as file:
        file.write(text)
    os._exit(0)


def answer(cells: list[list[str]], name: str, scripts: list[list[Any]]) -> dict[str, Any]:
    """Run the cells, then every script beside what they define.

    Either {"observations": [[one per operation] per script]}, or {"cell": …, "fault": …} if a
    cell failed, or {"undefined": name} if nothing of that name was defined, or {"borrowed": name}
    if it is not the learner's work but ours.
    """
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    for cell_name, source in cells:
        fault = _run_cell(f"<cell {cell_name}>", source, module)
        if fault is not None:
            return {"cell": cell_name, "fault": fault}
    if not hasattr(module, name):
        return {"undefined": name}
    subject = getattr(module, name)
    if script.is_ours(subject):
        return {"borrowed": name}
    return {"observations": [script.run(script.from_json(rows), subject) for rows in scripts]}


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


def _limit(limits: dict[str, int]) -> None:
    """Ask the system to hold this process to its limits; what it does not know is left out."""
    try:
        import resource
    except ImportError:  # Windows has none of them
        return
    for name, value in limits.items():
        with contextlib.suppress(AttributeError, ValueError, OSError):
            resource.setrlimit(getattr(resource, name), (value, value))
