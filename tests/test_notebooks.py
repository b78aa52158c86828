"""The notebooks in a real kernel, through nbval: solved ones are green, unsolved ones are red."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from minipaged.course import needs
from minipaged.course.catalog import catalog

ROOT = Path(__file__).parents[1]
WEIGHTS = ROOT / "minipaged/model/tutor/weights"
LESSONS = [
    lesson for lesson in catalog().lessons if not needs.lacking(catalog().needs_of(lesson.id))
]
STEMS = [lesson.stem for lesson in LESSONS]

pytestmark = pytest.mark.skipif(
    not WEIGHTS.exists(), reason="the notebooks run the tutor, whose weights are not there"
)


def start_nbval(*arguments: str) -> subprocess.Popen[str]:
    """Run nbval in a process of its own."""
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "pytest", "-v", "-n0", "-p", "no:cacheprovider", "--color=no"),
            *("--nbval-current-env", "--nbval-cell-timeout=60"),
            *("--nbval-sanitize-with", "lessons/nbval.cfg", *arguments),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def fill(stem: str, folder: Path, **cells: str) -> Path:
    """The exercise notebook as a learner would have it, with these sources by cell id (- is _)."""
    data = json.loads((ROOT / f"exercises/{stem}.ipynb").read_text(encoding="utf-8"))
    for cell in data["cells"]:
        cell["source"] = cells.get(cell["id"].replace("-", "_"), cell["source"])
    path = folder / f"{stem}.ipynb"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def own_cells(stem: str) -> dict[str, str]:
    """What the learner writes, by cell id, as the solution has it."""
    data = json.loads((ROOT / f"solutions/{stem}.ipynb").read_text(encoding="utf-8"))
    cells = {cell["id"].replace("-", "_"): "".join(cell["source"]) for cell in data["cells"]}
    return {key: source for key, source in cells.items() if key.startswith("ex_")}


WRONG_QUEUE = (ROOT / "tests/samples/02/02.1_wrong_prepend_onto_empty.py").read_text("utf-8")


@pytest.fixture(scope="module")
def nbval(tmp_path_factory):
    """Exit code and output of some runs, two at a time: kernels are slow to start."""
    folder = tmp_path_factory.mktemp("notebooks")
    half = fill("02_block_pool", folder, **(own_cells("02_block_pool") | {"ex_02_1": WRONG_QUEUE}))
    said = {}
    for pair in (
        {
            "lessons": ["--nbval", *(f"lessons/{stem}.ipynb" for stem in STEMS)],
            "solutions": ["--nbval", *(f"solutions/{stem}.ipynb" for stem in STEMS)],
        },
        {
            "unsolved": ["--nbval-lax", *(f"exercises/{stem}.ipynb" for stem in STEMS)],
            "half solved": ["--nbval-lax", str(half)],
        },
    ):
        started = {name: start_nbval(*arguments) for name, arguments in pair.items()}
        try:
            for name, run in started.items():
                said[name] = (run.communicate(timeout=240)[0], run.returncode)
        finally:
            for run in started.values():
                run.kill()
    return {name: (code, text) for name, (text, code) in said.items()}


def verdicts(text: str, stem: str, node: str) -> dict[str, str]:
    """PASSED or FAILED by the id of the code cell, from nbval's lines that begin with `node`."""
    data = json.loads((ROOT / f"exercises/{stem}.ipynb").read_text(encoding="utf-8"))
    ids = [cell["id"] for cell in data["cells"] if cell["cell_type"] == "code"]
    found = re.findall(rf"^{node}::Cell (\d+) (PASSED|FAILED)", text, re.MULTILINE)
    assert len(found) == len(ids), text
    return {ids[int(number)]: verdict for number, verdict in found}


def outputs(path: str) -> dict[str, str]:
    """What each code cell of a stored notebook printed, by cell id."""
    cells = json.loads((ROOT / path).read_text(encoding="utf-8"))["cells"]
    return {
        cell["id"]: "".join("".join(output.get("text", "")) for output in cell["outputs"])
        for cell in cells
        if cell["cell_type"] == "code"
    }


@pytest.mark.parametrize("folder", ["lessons", "solutions"])
def test_lessons_and_solutions_give_exactly_their_stored_outputs(nbval, folder):
    code, said = nbval[folder]
    assert code == 0, said
    assert all(f"{folder}/{stem}::ipynb::Cell 0 PASSED" in said for stem in STEMS)


@pytest.mark.parametrize("stem", STEMS)
def test_an_unsolved_exercise_is_red_at_every_check(nbval, stem):
    code, said = nbval["unsolved"]
    assert code == 1
    for cell_id, verdict in verdicts(said, stem, f"exercises/{stem}::ipynb").items():
        if cell_id.startswith("ex-"):
            assert verdict == "PASSED", f"{cell_id}: a skeleton can be run"
        if cell_id.startswith("check-"):
            assert verdict == "FAILED", cell_id
    for exercise in catalog().exercises_of(stem[:2]):
        assert re.search(rf"CheckFailed: {exercise.id} {exercise.name}: (\d+) of \1 checks", said)


def test_one_wrong_cell_is_red_at_its_own_check_and_no_other(nbval):
    code, said = nbval["half solved"]
    assert code == 1
    found = verdicts(said, "02_block_pool", "")  # outside of the root a node has no path
    checks = {cell_id: found[cell_id] for cell_id in found if cell_id.startswith("check-")}
    assert checks == {"check-02-1": "FAILED", "check-02-2": "PASSED", "check-02-3": "PASSED"}


@pytest.mark.parametrize("stem", STEMS)
def test_a_filled_exercise_is_the_solved_notebook(stem, tmp_path):
    """So that the green run of the solution is the green run of a solved exercise."""
    filled = json.loads(fill(stem, tmp_path, **own_cells(stem)).read_text(encoding="utf-8"))
    solved = json.loads((ROOT / f"solutions/{stem}.ipynb").read_text(encoding="utf-8"))
    code = [
        [(cell["id"], "".join(cell["source"])) for cell in notebook["cells"]]
        for notebook in (filled, solved)
    ]
    opens = [cell_id for cell_id, _ in code[0] if "-open-" in cell_id]
    assert opens, "every lesson has an open question"
    filled_cells, solved_cells = (dict(cells) for cells in code)
    for cell_id in opens:
        assert filled_cells.pop(cell_id) == "YOUR ANSWER HERE"
        assert len(solved_cells.pop(cell_id)) > 200
    assert filled_cells == solved_cells


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
