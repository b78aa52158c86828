"""Submissions of lesson 00 for the tests of grading."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from minipaged.course.grade import Report, Result, exit_code, grade
from minipaged.course.sandbox import Limits

ROOT = Path(__file__).parents[1]
RELEASE = ROOT / "exercises/00_tour.ipynb"
RIGHT = "def blocks_needed(num_tokens, block_size):\n    return -(-num_tokens // block_size)\n"


def submitter(folder: Path) -> Callable[..., Path]:
    """A function that writes a submission into `folder` and returns its path."""

    def submit(
        solution: str = RIGHT,
        change: Callable[[list], None] = lambda cells: None,
        name: str = "00_tour.ipynb",
    ) -> Path:
        data = json.loads(RELEASE.read_text(encoding="utf-8"))
        [own] = [cell for cell in data["cells"] if cell["id"] == "ex-00-1"]
        own["source"] = solution
        change(data["cells"])
        path = folder / name
        path.write_text(json.dumps(data), encoding="utf-8")
        return path

    return submit


def graded(path: Path, seed: int = 1, **limits) -> tuple[Report, Result]:
    """The one report and its one result."""
    [report] = grade([path], seed, limits=Limits(**limits))
    [result] = report.results
    assert (result.max_points, report.max_points) == (1, 1)
    assert result.points == report.points == int(result.passed)
    assert exit_code([report]) == (0 if report.passed else 1)
    return report, result
