"""Submissions for the tests of grading: of lesson 00, and of small courses made for a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from minipaged.course.catalog import Catalog, Exercise, Lesson
from minipaged.course.checks import lesson_00
from minipaged.course.dev.notebook import solved_notebook, strip, text_of
from minipaged.course.grade import Report, Result, exit_code, grade
from minipaged.course.sandbox import Limits
from minipaged.course.shipped import Course

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


def minipaged(*arguments, **environment) -> subprocess.CompletedProcess[bytes]:
    """Run the command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "minipaged.cli", *map(str, arguments)],
        capture_output=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


class SmallCourse:
    """A course of one lesson with a few exercises, its release, and submissions of it.

    An exercise is (name, points, solution); all are checked by `check`, or as 00.1 is.
    """

    def __init__(
        self,
        folder: Path,
        monkeypatch,
        exercises: Sequence[tuple[str, int, str]],
        *,
        check=lesson_00.CHECKS["00.1"],
        given: str = "",
        component: str | None = None,
    ) -> None:
        self.folder = folder
        hints = ("a", "b", "c")
        self.course = Catalog(
            (Lesson("00", "tour", "A tour", 20),),
            tuple(
                Exercise(f"00.{i}", name, points, "lesson_00", hints, component=component)
                for i, (name, points, _) in enumerate(exercises, 1)
            ),
        )
        checks = {exercise.id: check for exercise in self.course.exercises}
        monkeypatch.setattr(lesson_00, "CHECKS", checks)
        source = f"# %% given=true\n{given}\n\n" if given else ""
        for i, (_, _, solution) in enumerate(exercises, 1):
            source += f'# %% exercise="00.{i}"\n{_marked(solution)}\n# %% check="00.{i}"\n1\n\n'
        (folder / "00_tour.py").write_text(source, encoding="utf-8")
        self.solved = solved_notebook(folder / "00_tour.py", self.course.lessons[0], self.course)
        for kind, notebook in (("exercises", strip(self.solved)), ("solutions", self.solved)):
            (folder / kind).mkdir()
            path = folder / kind / "00_tour.ipynb"
            path.write_text(text_of(notebook), encoding="utf-8")

    def submit(
        self,
        *sources: str | None,
        change: Callable[[dict], None] = lambda data: None,
        name: str = "handed_in.ipynb",
    ) -> Path:
        """Write a submission: a source per exercise, the solution where there is none."""
        data = json.loads(text_of(self.solved))
        for number, source in enumerate(sources, 1):
            if source is not None:
                [own] = [cell for cell in data["cells"] if cell["id"] == f"ex-00-{number}"]
                own["source"] = source
        change(data)
        path = self.folder / name
        path.write_text(json.dumps(data), encoding="utf-8")
        return path

    def grade(self, *paths: Path, no_copies: bool = False, **limits) -> list[Report]:
        """Reports on submissions, hidden checks from seed 1."""
        return grade(
            paths,
            1,
            course=Course(self.course, self.folder),
            no_copies=no_copies,
            limits=Limits(**limits) if limits else None,
        )


def _marked(solution: str) -> str:
    """A solution with its body between the markers."""
    first, rest = solution.rstrip("\n").split("\n", 1)
    return f"{first}\n    ### BEGIN SOLUTION\n{rest}\n    ### END SOLUTION\n"


def three_exercises(folder: Path, monkeypatch, points: Sequence[int] = (1, 1, 1)) -> SmallCourse:
    """blocks_needed three times, as one, two and three; a given cell that each of them needs."""
    body = "    assert HALF\n    return -(-n // b)\n"
    exercises = [
        (name, worth, f"def {name}(n, b):\n{body}")
        for name, worth in zip(("one", "two", "three"), points, strict=True)
    ]
    return SmallCourse(folder, monkeypatch, exercises, given='HALF = "//"')
