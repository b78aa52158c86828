"""Does a cell stand on its own? What it imports that a graded cell may not, and what it takes from
other cells, which are not there when it is graded.

Nothing is run: the cell is compiled and looked at. Standard library only.
"""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import linecache
import types
import warnings
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from minipaged.course import guard

# what a notebook puts among Python's own names
_OF_NOTEBOOKS = frozenset({"display", "get_ipython"})
_OF_MODULES = frozenset(vars(types.ModuleType("any"))) | {"__builtins__"}
_BUILTINS = (frozenset(vars(builtins)) | _OF_MODULES) - _OF_NOTEBOOKS
_READS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_BINDS = frozenset({"STORE_NAME", "STORE_GLOBAL"})


def notes(
    source: str, *, tensors: bool, given: Iterable[str] = (), elsewhere: Collection[str] = ()
) -> list[str]:
    """What will be missed or refused when the cell is graded, a sentence each.

    tensors: its exercise is on tensors. given: sources of the cells that are run before it.
    elsewhere: names that other cells define; of names that nobody defines nothing is said. A cell
    that is no Python has no notes: grading says that.
    """
    try:
        tree, code = _parsed(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    refused = dict.fromkeys(_refused(tree, guard.importable(tensors)))
    said = [f"At grading, {guard.refusal(name)}." for name in refused]
    wanted = _wanted(tree, code, given)
    for name in wanted:
        if name in _OF_NOTEBOOKS:
            said.append(f"`{name}` is the notebook's own and is not there at grading.")
        elif name in elsewhere:
            said.append(
                f"`{name}` is defined in another cell: only this cell is graded, move it in."
            )
    if "open" in _reads(code) and "open" not in _bound(code):
        said.append(f"`open`: {guard.NO_FILES}.")
    return said


def defined(source: str) -> set[str]:
    """The names that a cell defines; lines with commands of the notebook are left out. Empty if
    it is no Python."""
    lines = ("" if line.startswith(("%", "!")) else line for line in source.splitlines())
    try:
        _, code = _parsed("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError):
        return set()
    return _bound(code)


def cell_of(subject: Any) -> str:
    """The whole cell that defines a function or class, as the notebook keeps it; "" if it was not
    defined in a cell."""
    parts = vars(subject).values() if isinstance(subject, type) else [subject]
    for part in parts:
        part = getattr(part, "__func__", None) or getattr(part, "fget", None) or part
        code = getattr(inspect.unwrap(part) if callable(part) else part, "__code__", None)
        filename = getattr(code, "co_filename", "")
        if filename and not Path(filename).exists():
            source = "".join(linecache.getlines(filename))
            if source:
                return source
    return ""


def _parsed(source: str) -> tuple[ast.Module, types.CodeType]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source), compile(source, "<cell>", "exec", dont_inherit=True)


def _refused(tree: ast.AST, importable: Collection[str]) -> Iterator[str]:
    """The modules that may not be imported; what may fail (`try`) is left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Try) and node.handlers:
            continue
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        tops = (name.partition(".")[0] for name in names)
        yield from (top for top in tops if top not in importable)
        yield from _refused(node, importable)


def _wanted(tree: ast.AST, code: types.CodeType, given: Iterable[str]) -> list[str]:
    """Names that are read and come from nowhere in this cell, in the order of the alphabet."""
    if any(isinstance(n, ast.ImportFrom) and n.names[0].name == "*" for n in ast.walk(tree)):
        return []  # they may come from there
    known = _bound(code) | _BUILTINS
    return sorted(_reads(code) - known.union(*map(defined, given)))


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and those inside it; annotations that are worked out on demand are not."""
    yield code
    for part in code.co_consts:
        if isinstance(part, types.CodeType) and part.co_name != "__annotate__":
            yield from _codes(part)


def _reads(code: types.CodeType) -> set[str]:
    """The names that are looked up outside of functions; a class's own are not."""
    found = set()
    for part in _codes(code):
        own = _names(part, _BINDS) if part.co_name != "<module>" else set()
        found |= _names(part, _READS) - own
    return found


def _bound(code: types.CodeType) -> set[str]:
    """The names that running a cell defines."""
    inside = (_names(part, {"STORE_GLOBAL"}) for part in _codes(code))
    return _names(code, _BINDS).union(*inside)


def _names(code: types.CodeType, operations: Collection[str]) -> set[str]:
    return {one.argval for one in dis.get_instructions(code) if one.opname in operations}
