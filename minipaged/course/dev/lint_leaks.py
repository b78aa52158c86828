"""Leaks: lines of a solution, of a model answer or of a hidden script where learners can read them.

A line of a solution is secret unless it is short, trivial, or also stands in its cell outside the
solution. It leaks if it occurs in any cell of any exercise notebook. Lessons may show a line or two
of what a solution uses: there, only several consecutive lines in a code cell are a leak.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from nbformat import NotebookNode

from minipaged.course.dev.notebook import solution_regions

MIN_LENGTH = 13
MIN_RUN = 3
# says nothing about a solution: any class has such lines
_TRIVIAL = re.compile(
    r"return( [\w.]+)?|raise NotImplementedError(\(\))?|(else|try|finally):|except \w+:"
    r"|self\.(?P<name>\w+) = (?P=name)|super\(\)\.__init__\(.*\)|(import|from) .*"
    r"|def __\w+__\(.*:|@\w+"
)


class Secret(NamedTuple):
    """What must not be shown. name: how to speak of it. text: its lines, stripped. lines: those of
    them that are a leak one by one."""

    name: str
    text: tuple[str, ...]
    lines: tuple[str, ...]


class Leak(NamedTuple):
    """A line of a secret, in the cell with this id."""

    secret: Secret
    cell_id: str
    line: str


def secret_of(cell: NotebookNode, name: str) -> Secret:
    """The solution of an exercise's cell, or a model answer."""
    return Secret(name, tuple(_inside(cell.source)), tuple(secret_lines(cell.source)))


def secret_lines(source: str) -> list[str]:
    """The stripped lines of a cell's solution that must be read nowhere else."""
    lines = source.splitlines()
    for first, last in reversed(solution_regions(source)):
        del lines[first : last + 1]
    outside = "\n".join(lines)
    return [
        line
        for line in _inside(source)
        if len(line) >= MIN_LENGTH and not _TRIVIAL.fullmatch(line) and not _holds(outside, line)
    ]


def shown_lines(secrets: Iterable[Secret], cells: Iterable[NotebookNode]) -> Iterator[Leak]:
    """The first secret line in each cell, for each secret."""
    for secret in secrets:
        for cell in cells:
            line = next((line for line in secret.lines if _holds(cell.source, line)), None)
            if line is not None:
                yield Leak(secret, cell.id, line)


def shown_runs(secrets: Iterable[Secret], cells: Iterable[NotebookNode]) -> Iterator[Leak]:
    """The first MIN_RUN consecutive lines in each code cell, for each secret."""
    for secret in secrets:
        runs = _runs(secret.text)
        for cell in (cell for cell in cells if cell.cell_type == "code"):
            shown = sorted(runs & _runs(_stripped(cell.source)))
            if shown:
                yield Leak(secret, cell.id, shown[0][0])


def _runs(lines: Sequence[str]) -> set[tuple[str, ...]]:
    """Consecutive lines that say something; blank lines between them do not count."""
    runs = (tuple(lines[i : i + MIN_RUN]) for i in range(len(lines) - MIN_RUN + 1))
    return {
        run for run in runs if any(len(x) >= MIN_LENGTH and not _TRIVIAL.fullmatch(x) for x in run)
    }


def _inside(source: str) -> list[str]:
    lines = source.splitlines()
    regions = solution_regions(source)
    return _stripped("\n".join(line for a, b in regions for line in lines[a + 1 : b]))


def _stripped(source: str) -> list[str]:
    return [line.strip() for line in source.splitlines() if line.strip()]


def _holds(text: str, line: str) -> bool:
    """The line occurs in the text, and not as a part of longer names."""
    return line in text and re.search(rf"(?<!\w){re.escape(line)}(?!\w)", text) is not None
