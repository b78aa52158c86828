"""The process that a submission's code runs in: it carries scripts out and reports plain data.

It is told the cells, the name that they define and the scripts; what is expected it never hears.
So there is nothing here to be talked out of a verdict: whoever answers right has answered, and
whoever stops the process, or writes nonsense where the answer goes, has not.

stdin: a line of JSON (cells, name, scripts, importable, tensors, limits). stdout: a line of JSON
(see `answer`). Where the first line says "more", a second one follows with the hidden scripts, once
the first answer is there: no cell and no visible script can look at what has not come yet. Its
answer is a second line. Standard library and plain data only; torch where the scripts use tensors.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import linecache
import os
import re
import sys
import time
import types
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from minipaged.course import guard, isolate, needs, script


def main() -> None:
    """Read the request, answer it, end at once, whatever threads are still running.

    Arguments: the folder to import minipaged from, the file to make when the learner's time
    begins, and "isolated" for namespaces of its own.
    """
    _, _, started, how = sys.argv
    is_counted = how == "isolated" and _enter_namespaces()
    asked = os.dup(0)
    request = json.loads(_next_line(asked))
    out = _private_stdout()
    if request["tensors"]:
        load_tensors(needs.needed_by(source for _, source in request["cells"]) == "triton")
    sys.argv = [""]
    Path(started).touch()
    if not is_counted:
        del request["limits"]["RLIMIT_NPROC"]
    limit(request["limits"])
    with contextlib.suppress(OSError), os.fdopen(out, "w", encoding="ascii") as file:
        _answer_in_turn(request, asked, file)
    os._exit(0)


def load_tensors(with_triton: bool) -> None:
    """Import what the scripts and the cells use, before the learner's time begins."""
    importlib.import_module("torch")
    if with_triton:
        with contextlib.suppress(ImportError):  # no wheel for this system: the cell will say so
            # the second is what the interpreter imports at its first launch, in every child anew
            importlib.import_module("triton.language")
            importlib.import_module("triton.experimental.gluon")


def _answer_in_turn(request: dict[str, Any], asked: int, file: TextIO) -> None:
    """Answer the first scripts; then ask for the others, if there are any, and answer them."""
    found = _defined(request["cells"], request["name"], request["importable"])
    if not isinstance(found, _Subject):
        file.write(json.dumps(found) + "\n")
        return
    file.write(json.dumps(_observed(request["scripts"], found)) + "\n")
    file.flush()
    if request["more"]:
        file.write(json.dumps(_observed(json.loads(_next_line(asked)), found)) + "\n")


def _next_line(asked: int) -> bytes:
    """The next line of a file that is still being written. Waits for its end, as long as it may."""
    text = b""
    while not text.endswith(b"\n"):
        piece = os.read(asked, 2**20)
        text += piece
        if not piece:
            time.sleep(0.001)
    return text


def _enter_namespaces() -> bool:
    """Into namespaces of our own; whether the system counts processes in them alone.

    It does where there is a user namespace (Linux 5.14), for whoever is not root. Elsewhere all
    processes of the user would count, whatever they are.
    """
    before = _user_namespace()
    isolate.enter()
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    is_new = release is not None and (int(release[1]), int(release[2])) >= (5, 14)
    return is_new and _user_namespace() != before


def _user_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/user").readlink())
    except OSError:
        return ""


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
    found = _defined(cells, name, importable)
    return _observed(scripts, found) if isinstance(found, _Subject) else found


class _Subject(NamedTuple):
    """What the cells define."""

    value: Any


def _observed(scripts: list[list[Any]], subject: _Subject) -> dict[str, Any]:
    return {"observations": [script.run(script.from_json(rows), subject.value) for rows in scripts]}


def _defined(
    cells: list[list[str]], name: str, importable: Collection[str] | None
) -> _Subject | dict[str, Any]:
    """Run the cells; what they define, or the answer that says why there is nothing."""
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
    return _Subject(subject)


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
