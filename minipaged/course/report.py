"""Reports of grading for people (a table) and for programs (JSON)."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from minipaged.course.grade import Report

if TYPE_CHECKING:
    from rich.console import Console


def render(reports: Sequence[Report], console: Console) -> None:
    """Print a table, then a line for everything that cost points or was odd.

    Text from a submission is printed as text: it cannot colour the table or move the cursor.
    """
    from rich.table import Column, Table
    from rich.text import Text

    path = Column("notebook", overflow="fold")
    table = Table(path, "exercise", "points", "checks", "verdict")
    for report in reports:
        if not report.results:
            table.add_row(Text(report.path), "", "0 of 0", "", Text(report.error))
        for result in report.results:
            table.add_row(
                Text(report.path),
                Text(f"{result.exercise_id} {result.name}"),
                f"{result.points} of {result.max_points}",
                f"{result.num_passed} of {result.num_cases}",
                Text(result.status, style="green" if result.passed else "bold red"),
            )
    console.print(table)
    for line in _remarks(reports):
        console.print(Text(line), soft_wrap=True)
    console.print(Text(_total(reports)))


def _remarks(reports: Sequence[Report]) -> list[str]:
    lines = []
    for report in reports:
        for result in report.results:
            if result.reason:
                lines.append(f"{report.path}, {result.exercise_id}: {result.reason}")
        lines += [f"{report.path}, note: {note}" for note in report.notes]
    return lines


def _total(reports: Sequence[Report]) -> str:
    points, most = sum(r.points for r in reports), sum(r.max_points for r in reports)
    seeds = sorted({report.seed for report in reports})
    seed = f"; hidden checks from --seed {seeds[0]}" if len(seeds) == 1 else ""
    return f"{points} of {most} points{seed}"


def to_json(reports: Sequence[Report]) -> str:
    """All reports as one JSON object, text as it is."""
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
    return json.dumps(data, ensure_ascii=False, indent=1)
