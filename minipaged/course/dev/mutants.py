"""Mutants: a program with one small mistake in it, in every way that this file knows.

A check is good if it fails every mutant of the solution. Standard library only; nothing is run.

Left alone are docstrings, annotations, imports, `__slots__`, `__repr__`, f-strings and the words of
an exception: no check looks at them. Nor is a mutant made twice: an `if` without `else` whose
condition is False is one that is left out.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from minipaged.course.dev.mutations import DEFINITIONS, Place, body_of, changes


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change to a program.

    kind: what was done, in a few words. where: the function or method that it was done in
    ("FreeQueue.remove"), "" outside. line: in the original source. before, after: the lines that
    differ, each stripped. diff: the same as a unified diff. source: the whole changed program.
    All is written as in the original but for what was changed.
    """

    kind: str
    where: str
    line: int
    before: str
    after: str
    diff: str
    source: str


def mutants(source: str, demanded: Collection[str] = (), coarse: bool = False) -> list[Mutant]:
    """All mutants of a program, in the order of its lines; each differs from it and from the rest.

    demanded: names of the exceptions that are asked for; only those that are, or are derived from
    one, are replaced by another. coarse: numbers are doubled, not moved by one, for results that
    are right if they come near.
    SyntaxError if it is no Python. Cost: quadratic in the length of the program.
    """
    tree = ast.parse(source)
    original = ast.unparse(tree)
    found: dict[str, Mutant] = {}
    for place in _places(tree, ""):
        for kind, change in changes(place, demanded, coarse):
            if not hasattr(change, "lineno"):  # else it is part of the program
                ast.copy_location(change, place.node)
            place.put(change)
            unparsed = ast.unparse(tree)
            place.put(place.node)
            if unparsed == original or unparsed in found:
                continue
            text = _spliced(source, place.node, change, unparsed)
            before, after = (source, text) if text else (original, unparsed)
            found[unparsed] = _mutant(kind, place, before, after)
    return sorted(found.values(), key=lambda mutant: mutant.line)


_ANNOTATIONS = ("annotation", "returns", "type_params", "type_comment")
_ALONE = (ast.Import, ast.ImportFrom, ast.JoinedStr, ast.Global, ast.Nonlocal)


def _places(parent: ast.AST, where: str) -> Iterator[Place]:
    """Every node below `parent` that may be changed."""
    if isinstance(parent, DEFINITIONS):
        where = f"{where}.{parent.name}".lstrip(".")
    for field, value in ast.iter_fields(parent):
        if field in _ANNOTATIONS or (isinstance(parent, ast.Raise) and field == "cause"):
            continue
        many = isinstance(value, list)
        for index, node in enumerate(value if many else [value]):
            if not isinstance(node, ast.AST) or isinstance(node, _ALONE) or _is_apart(node):
                continue
            yield Place(node, parent, field, index if many else None, where)
            if not isinstance(parent, ast.Raise):  # the words of an exception
                yield from _places(node, where)


def _is_apart(node: ast.AST) -> bool:
    """A docstring, the assignment of __slots__, or a __repr__."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, DEFINITIONS):
        return node.name == "__repr__"
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__slots__"


def _spliced(source: str, old: Any, new: ast.AST, unparsed: str) -> str:
    """The source with one node replaced and all else as it was written.

    "" if that is another program than `unparsed` (an `elif` that is left out).
    """
    first = last = old
    if isinstance(old, DEFINITIONS):
        first, last, new = body_of(old)[0], body_of(old)[-1], ast.Pass()
    data, lines = source.encode(), source.encode().split(b"\n")
    # a node's columns count bytes
    begin, end = (
        sum(len(line) + 1 for line in lines[: line_number - 1]) + column
        for line_number, column in (
            (first.lineno, first.col_offset),
            (last.end_lineno, last.end_col_offset),
        )
    )
    piece = ast.unparse(new)
    for form in (piece, f"({piece})"):
        text = (data[:begin] + form.encode() + data[end:]).decode()
        with contextlib.suppress(SyntaxError):
            if ast.unparse(ast.parse(text)) == unparsed:
                return text
    return ""


def _mutant(kind: str, place: Place, before: str, after: str) -> Mutant:
    diff = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
    lines = list(diff)[2:]
    gone, come = (
        "\n".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+"
    )
    node, where = place.node, place.where
    if isinstance(node, DEFINITIONS):
        where = f"{where}.{node.name}".lstrip(".")
    number = int(getattr(node, "lineno", 0) or getattr(place.parent, "lineno", 0))
    return Mutant(kind, where, number, gone, come, "\n".join(lines), after)
