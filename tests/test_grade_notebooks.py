"""Grading notebooks as they come in: changed and damaged (cases 44 and 46 have more of it)."""

from __future__ import annotations

import json
import os

import pytest
from submissions import RIGHT, graded, submitter

from minipaged.course import submission
from minipaged.course.grade import exit_code, grade


@pytest.fixture
def submit(tmp_path):
    """Writes a submission of lesson 00 and returns its path."""
    return submitter(tmp_path)


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
