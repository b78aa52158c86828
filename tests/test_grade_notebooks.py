"""Grading notebooks as they come in: changed, damaged, many at once; and what is reported."""

from __future__ import annotations

import json
import os

import pytest
from submissions import RIGHT, graded, submitter

from minipaged.course import submission
from minipaged.course.catalog import Catalog, Exercise, Lesson
from minipaged.course.checks import lesson_00
from minipaged.course.grade import exit_code, grade
from minipaged.course.notebook import solved_notebook, strip, text_of
from minipaged.course.sandbox import Limits

# what students do to notebooks (cases 44 and 46)


@pytest.fixture
def submit(tmp_path):
    """Writes a submission of lesson 00 and returns its path."""
    return submitter(tmp_path)


def without(cell_id):
    def change(cells):
        cells[:] = [cell for cell in cells if cell["id"] != cell_id]

    return change


def test_a_deleted_check_cell_changes_nothing(submit):
    report, result = graded(submit(change=without("check-00-1")))
    assert result.passed
    assert report.notes == ("the check cell check-00-1 is gone: the release's checks were run",)
    assert not graded(submit("blocks_needed = max", change=without("check-00-1")))[1].passed


def test_an_edited_check_cell_is_not_believed(submit):
    def edit(cells):
        for cell in cells:
            if cell["id"] == "check-00-1":
                cell["source"] = "print('all passed')"

    report, result = graded(submit("blocks_needed = max", change=edit))
    assert (result.points, result.max_points) == (0, 1)
    assert report.notes == ("check-00-1 was edited: the release's checks were run",)


def test_a_deleted_solution_cell_is_named_and_the_maximum_stays(submit):
    _, result = graded(submit(change=without("ex-00-1")))
    assert result.status == "missing"
    assert "The cell ex-00-1 is not in the notebook: put it back." in result.reason


def test_of_two_cells_with_one_id_the_last_counts_once(submit):
    def double(cells):
        [own] = [cell for cell in cells if cell["id"] == "ex-00-1"]
        cells.append({**own, "source": "def blocks_needed(n, b):\n    return 0\n"})

    report, result = graded(submit(change=double))
    assert (result.points, result.status) == (0, "failed")
    assert report.notes == ("2 cells have the id ex-00-1: the last one counts, once",)


def test_a_text_cell_is_not_graded(submit):
    def turn(cells):
        [own] = [cell for cell in cells if cell["id"] == "ex-00-1"]
        own["cell_type"] = "markdown"

    def add(cells):
        cells.append({**cells[-1], "id": "ex-00-1", "cell_type": "markdown", "metadata": {}})

    _, result = graded(submit(change=turn))
    assert (result.points, result.status) == (0, "missing")
    assert result.reason == "ex-00-1 is no code cell any more: make it one again."
    report, result = graded(submit(change=add))
    assert result.passed
    assert report.notes == ()


def test_a_notebook_without_cell_ids_is_graded(submit, capfd):
    def age(cells):
        for cell in cells:
            del cell["id"]
        cells.insert(2, {"cell_type": "code", "metadata": {}, "source": ["1 / 0"], "outputs": []})

    assert graded(submit(change=age))[0].passed
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("source", "status", "reason"),
    [
        (
            "def blocks_needed(n, b)\n    return 1",
            "not Python",
            "Line 1 of the cell cannot be read",
        ),
        ("%timeit 1\n" + RIGHT, "not Python", "Commands of the notebook (% and !) do not belong"),
        ("def other(n, b):\n    return 1", "undefined", "The cell defines no blocks_needed."),
        ("if False:\n    blocks_needed = 1", "undefined", "The cell defines no blocks_needed."),
        (
            "x = HELPER\n" + RIGHT,
            "cell fails",
            "Only this cell is graded: it must hold the imports",
        ),
        ("blocks_needed = 3", "failed", "TypeError: 'int' object is not callable"),
        ("x = " + "(" * 5000, "not Python", "cannot be read as Python"),
        ("x = '\0'", "not Python", "cannot be read as Python"),
    ],
)
def test_a_cell_that_cannot_run_says_why(submit, source, status, reason):
    _, result = graded(submit(source))
    assert result.status == status
    assert reason in result.reason


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not a notebook: It is not JSON"),
        (b"hello", "not a notebook: It is not JSON"),
        (b"\xff\xfe\x00", "not a notebook: It is not text in UTF-8."),
        (b"[1, 2]", "not a notebook: It is not a notebook of format 4"),
        (b'{"nbformat": 3, "worksheets": []}', "open it in Jupyter and save it"),
        (b"[" * 100_000, "not a notebook: It is not JSON"),
    ],
)
def test_a_file_that_is_no_notebook_keeps_the_maximum(tmp_path, content, reason):
    path = tmp_path / "00_tour.ipynb"
    path.write_bytes(content)
    report, _ = graded(path)
    assert reason in report.error
    assert not report.passed


@pytest.mark.parametrize("cells", [[], [1, None, {}], [{"source": {"a": 1}, "metadata": []}]])
def test_odd_cells_do_no_harm(tmp_path, cells):
    path = tmp_path / "00_tour.ipynb"
    path.write_text(json.dumps({"nbformat": 4, "cells": cells, "metadata": None}))
    assert graded(path)[1].status == "missing"


def test_a_notebook_of_something_else_is_an_error(tmp_path):
    path = tmp_path / "poems.ipynb"
    path.write_text(json.dumps({"nbformat": 4, "cells": [], "metadata": {}}))
    [report] = grade([path], 1)
    assert (report.results, report.max_points, exit_code([report])) == ((), 0, 1)
    assert report.error == "no exercise: No exercise of this course is in it."


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")
def test_what_never_ends_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "00_tour.ipynb")
    (tmp_path / "00_tour_link.ipynb").symlink_to("/dev/zero")
    (tmp_path / "00_tour_folder.ipynb").mkdir()
    reports = grade([tmp_path], 1)
    assert {r.error for r in reports} == {"not a notebook: It is not a regular file."}
    assert [r.max_points for r in reports] == [1, 1, 1]


def test_a_file_is_read_up_to_the_limit_only(submit, monkeypatch):
    path = submit(RIGHT + "#" * 10_000)  # larger than the release, which is read as well
    monkeypatch.setattr(submission, "MAX_BYTES", path.stat().st_size)
    assert graded(path)[0].passed
    monkeypatch.setattr(submission, "MAX_BYTES", path.stat().st_size - 1)
    assert graded(path)[0].error == "not a notebook: It is larger than 0 MiB."


# three exercises (cases 41, 42, 45)


@pytest.fixture
def three(tmp_path, monkeypatch):
    """Grades a submission of a lesson with three exercises, the last one worth 0 points."""
    names = ("one", "two", "three")
    course = Catalog(
        (Lesson("00", "tour", "A tour", 20),),
        tuple(
            Exercise(f"00.{i}", name, 0 if i == 3 else 1, "lesson_00", ("a", "b", "c"))
            for i, name in enumerate(names, 1)
        ),
    )
    monkeypatch.setattr(
        lesson_00, "CHECKS", {f"00.{i}": lesson_00.CHECKS["00.1"] for i in (1, 2, 3)}
    )
    source = '# %% given=true\nHALF = "//"\n\n'
    for i, name in enumerate(names, 1):
        source += (
            f'# %% exercise="00.{i}"\ndef {name}(n, b):\n    ### BEGIN SOLUTION\n'
            "    assert HALF\n    return -(-n // b)\n    ### END SOLUTION\n\n"
            f'# %% check="00.{i}"\n1\n\n'
        )
    (tmp_path / "00_tour.py").write_text(source)
    solved = solved_notebook(tmp_path / "00_tour.py", course.lessons[0], course)
    release = tmp_path / "release"
    release.mkdir()
    (release / "00_tour.ipynb").write_text(text_of(strip(solved)))

    def three(second: str | None = None):
        for cell in solved.cells:
            if second is not None and cell.id == "ex-00-2":
                cell.source = second
        path = tmp_path / "submission.ipynb"
        path.write_text(text_of(solved))
        [report] = grade([path], 1, course=course, release=release, limits=Limits(seconds=1.5))
        return report

    return three


def test_given_cells_are_the_releases_and_a_zero_point_exercise_passes(three):
    report = three()
    assert [(r.points, r.max_points) for r in report.results] == [(1, 1), (1, 1), (0, 0)]
    assert report.passed
    assert exit_code([report]) == 0


@pytest.mark.parametrize(
    ("second", "status"),
    [
        ("def two(n, b):\n    while True: pass", "time limit"),
        ("while True: pass\ndef two(n, b): return 1", "time limit"),
        ("import os\ndef two(n, b):\n    os.abort()", "ended early"),
    ],
)
def test_one_exercise_that_hangs_or_dies_costs_only_its_own_points(three, second, status):
    report = three(second)
    assert [r.passed for r in report.results] == [True, False, True]
    assert [r.points for r in report.results] == [1, 0, 0]
    assert report.results[1].status == status
    assert exit_code([report]) == 1
