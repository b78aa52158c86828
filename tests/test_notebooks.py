"""The notebooks in a real kernel, through nbval: solved ones are green, an unsolved one is red."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WEIGHTS = ROOT / "minipaged/model/tutor/weights"

pytestmark = pytest.mark.skipif(
    not WEIGHTS.exists(), reason="the notebooks run the tutor, whose weights are not there"
)


def start_nbval(*arguments: str) -> subprocess.Popen[str]:
    """Run nbval in a process of its own."""
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--color=no"),
            *("--nbval-current-env", "--nbval-cell-timeout=60", *arguments),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.fixture(scope="module")
def nbval():
    """Exit code and output of two runs, started side by side: kernels are slow to start."""
    started = {
        "solved": start_nbval("--nbval", "lessons/00_tour.ipynb", "solutions/00_tour.ipynb"),
        "unsolved": start_nbval("--nbval-lax", "-x", "exercises/00_tour.ipynb"),
    }
    try:
        said = {name: run.communicate(timeout=120)[0] for name, run in started.items()}
    finally:
        for run in started.values():
            run.kill()
    return {name: (run.returncode, said[name]) for name, run in started.items()}


def outputs(path: str) -> dict[str, str]:
    """What each code cell of a stored notebook printed, by cell id."""
    cells = json.loads((ROOT / path).read_text(encoding="utf-8"))["cells"]
    return {
        cell["id"]: "".join("".join(output.get("text", "")) for output in cell["outputs"])
        for cell in cells
        if cell["cell_type"] == "code"
    }


def test_lesson_and_solution_give_exactly_their_stored_outputs(nbval):
    code, said = nbval["solved"]
    assert code == 0, said


def test_an_unsolved_exercise_is_red_at_its_check(nbval):
    code, said = nbval["unsolved"]
    assert code == 1, said
    assert "CheckFailed: 00.1 blocks_needed: 9 of 9 checks failed" in said
    assert "1 failed, 1 passed" in said  # the definition runs, the check does not


def test_the_lessons_prose_says_what_its_cells_print():
    cells = outputs("lessons/00_tour.ipynb")
    prose = (ROOT / "lessons/00_tour.py").read_text(encoding="utf-8").replace("\n# ", " ")
    first, sixty = cells["00-code-5"], cells["00-code-6"]
    assert "request G in the first step: 96 tokens, six blocks, nothing empty" in prose
    assert re.search(r"^G +96 tokens, +0 empty +\[(\d+, ){5}\d+\]$", first, re.MULTILINE)
    assert "The blocks of B, D and F went back" in prose
    assert re.findall(r"^([A-H])  ", sixty, re.MULTILINE) == ["A", "C", "E", "G", "H"]
    assert "Follow H in the grid: it begins at block 44" in prose
    assert re.search(r"^H .*\[44, 45, 46, 47, 48, 49, \d", sixty, re.MULTILINE)
    assert "B is the answer that came in 53 pieces before, and here it has 54 tokens" in prose
    assert cells["00-code-2"].endswith("\n53 pieces\n")
    assert re.search(r"^B +54 tokens", cells["00-code-3"], re.MULTILINE)
    alone, together = map(int, re.findall(r"\d+", cells["00-code-4"]))
    lengths = [
        int(n) for n in re.findall(r"^[A-H] +(\d+) tokens", cells["00-code-3"], re.MULTILINE)
    ]
    assert (alone, together) == (sum(lengths), max(lengths))
    assert "The tutor allows 1,024 tokens" in prose
    assert "8 * 1024 = 8192 slots" in cells["00-code-8"]
    assert "1536 slots: room for 1 reservation" in cells["00-code-8"]


def test_how_checking_works_is_told_before_the_exercise_is_opened():
    prose = (ROOT / "lessons/00_tour.py").read_text(encoding="utf-8")
    assert 0 < prose.find("## How checking works") < prose.find("`exercises/00_tour.ipynb`")
    release = (ROOT / "exercises/00_tour.ipynb").read_text(encoding="utf-8")
    assert "Only this one cell is graded" in prose
    assert "Only the next cell is graded" in release
    assert "Run this once the check has passed" in release


def test_the_solutions_prose_says_what_lesson_and_solution_print():
    prose = (ROOT / "solutions/00_tour.py").read_text(encoding="utf-8").replace("\n# ", " ")
    lesson, solution = outputs("lessons/00_tour.ipynb"), outputs("solutions/00_tour.ipynb")
    assert "a prompt of 93 tokens and its answer has 144, and yet it ends with 236 tokens" in prose
    assert re.search(r"^A +93 tokens", lesson["00-code-5"], re.MULTILINE)
    assert re.search(r"^A +144 tokens", lesson["00-code-3"], re.MULTILINE)
    assert re.search(r"^request-0 +236 +15 +15$", solution["00-code-1"], re.MULTILINE)
