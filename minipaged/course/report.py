"""Reports of grading for people (a table) and for programs (JSON)."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from minipaged.course.grade import Report
from minipaged.course.plain import clean

_OTHER_COLUMNS = 61  # characters that all but the notebooks' names take

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text


def render(reports: Sequence[Report], console: Console) -> None:
    """Print a table, then a line for everything that cost points or was odd.

    The rows of a notebook stand under its name; several exercises have a subtotal. Text from a
    submission is printed as text: it cannot colour the table or move the cursor.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Column, Table
    from rich.text import Text

    names = _short([report.path for report in reports])
    table = Table(
        Column("notebook", overflow="fold"),
        *(Column(title, no_wrap=True) for title in ("exercise", "points", "checks")),
        "verdict",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    for report, name in zip(reports, names, strict=True):
        in_table = Text(_folded(clean(name), console.width - _OTHER_COLUMNS))
        _add_rows(table, report, in_table)
    console.print(table)
    for line in _remarks(reports, names):
        console.print(_text(line), soft_wrap=True)
    console.print(_text(_total(reports)))


def _add_rows(table: Table, report: Report, name: Text) -> None:
    """A row for every exercise of a notebook, and one for all of them."""
    if not report.results:
        table.add_row(name, "", "0 of 0", "", _text(report.error))
    for number, result in enumerate(report.results):
        table.add_row(
            name if number == 0 else "",
            _text(f"{result.exercise_id} {result.name}"),
            f"{result.points} of {result.max_points}",
            f"{result.num_passed} of {result.num_cases}",
            _text(result.status, "green" if result.passed else "bold red"),
        )
    if len(report.results) > 1:
        table.add_row("", "together", f"{report.points} of {report.max_points}", style="bold")
        table.add_row()


def _text(text: str, style: str = "") -> Text:
    """Text for the terminal, without markup and without control characters."""
    from rich.text import Text

    return Text(clean(text), style=style)


def _short(paths: Sequence[str]) -> list[str]:
    """The paths from the folder on that they have in common, if there is one."""
    try:
        common = Path(os.path.commonpath([Path(path).parent for path in paths]))
    except ValueError:  # none given, or not all from the same root
        return list(paths)
    if common == Path(common.anchor):
        return list(paths)
    return [str(Path(path).relative_to(common)) for path in paths]


def _folded(name: str, width: int) -> str:
    """A path for a narrow column: without its ending, a long one broken behind a folder."""
    stem = name.removesuffix(".ipynb")
    if len(stem) <= width:
        return stem
    lines = [""]
    for part in re.findall(r"[^/]*/?", stem):
        if len(lines[-1] + part) > width and lines[-1]:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _remarks(reports: Sequence[Report], names: Sequence[str]) -> list[str]:
    lines = []
    for report, name in zip(reports, names, strict=True):
        for result in report.results:
            if result.reason:
                lines.append(f"{name}, {result.exercise_id}: {result.reason}")
        lines += [f"{name}, note: {note}" for note in report.notes]
    return lines


def _total(reports: Sequence[Report]) -> str:
    points, most = sum(r.points for r in reports), sum(r.max_points for r in reports)
    seeds = sorted({report.seed for report in reports})
    seed = f"; hidden checks from --seed {seeds[0]}" if len(seeds) == 1 else ""
    return f"{points} of {most} points{seed}"


def to_json(reports: Sequence[Report]) -> str:
    """All reports as one JSON object, in ASCII: no terminal's encoding can damage it."""
    data = {
        "points": sum(report.points for report in reports),
        "max_points": sum(report.max_points for report in reports),
        "passed": bool(reports) and all(report.passed for report in reports),
        "reports": [
            {
                **dataclasses.asdict(report),
                "points": report.points,
                "max_points": report.max_points,
                "passed": report.passed,
            }
            for report in reports
        ],
    }
    return json.dumps(data, indent=1)
