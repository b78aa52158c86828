"""Rules on what a lesson says: its length, the claims and cases that it names, what it offers.

A reference in prose is the word claim or claims with ids behind it ("claims E1, E2 and C24"), or
case or cases with numbers ("case 12"). Such words are always read as references.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from nbformat import NotebookNode

from minipaged.course.references import case, claim

MAX_WORDS = 2500
INTERACTIVE = ("step_through", "explore")
_MORE = r"(?:\s*(?:,|and|or|to|–|,\s*and)\s*"
_CLAIMS = re.compile(rf"\bclaims?\s+([EC]\d+\b{_MORE}[EC]\d+\b)*)", re.IGNORECASE)
_CASES = re.compile(rf"\bcases?\s+(\d+\b(?![.,]\d){_MORE}\d+\b(?![.,]\d))*)", re.IGNORECASE)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def prose_of(cells: Iterable[NotebookNode]) -> str:
    """The text cells of a notebook, without blocks of code."""
    texts = (cell.source for cell in cells if cell.cell_type == "markdown")
    return _FENCED.sub("", "\n\n".join(texts))


def length_faults(prose: str) -> Iterator[str]:
    """A lesson of more than MAX_WORDS words."""
    words = sum(any(letter.isalnum() for letter in word) for word in prose.split())
    if words > MAX_WORDS:
        yield f"has {words:,} words of prose: bring it down to {MAX_WORDS:,}"


def reference_faults(prose: str) -> Iterator[str]:
    """Claims and cases that the prose names and that do not exist."""
    claims = [x.upper() for m in _CLAIMS.finditer(prose) for x in re.findall(r"\w\d+", m[1])]
    cases = [int(n) for m in _CASES.finditer(prose) for n in re.findall(r"\d+", m[1])]
    yield from unknown_references(claims, cases)


def unknown_references(claims: Iterable[str], cases: Iterable[int]) -> Iterator[str]:
    """Ids and numbers that claims.toml and cases.toml do not have."""
    look_ups: list[tuple[Callable[[Any], object], Any]] = [(claim, one) for one in claims]
    look_ups += [(case, one) for one in cases]
    for look_up, name in dict.fromkeys(look_ups):
        try:
            look_up(name)
        except ValueError as error:
            yield f"{error}: name one of these"


def is_interactive(cells: Iterable[NotebookNode]) -> bool:
    """A code cell calls one of INTERACTIVE."""
    return any(_calls(cell.source) & set(INTERACTIVE) for cell in cells if cell.cell_type == "code")


def _calls(source: str) -> set[str]:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return set()
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {getattr(function, "id", getattr(function, "attr", "")) for function in called}
