"""Which notebooks are graded, and how the reports on them look."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console
from submissions import RELEASE, ROOT, graded, submitter

from minipaged.course import shipped, submission
from minipaged.course.catalog import catalog
from minipaged.course.grade import Report, Result, exit_code, grade
from minipaged.course.report import render, to_json


@pytest.fixture
def submit(tmp_path):
    """Writes a submission of lesson 00 and returns its path."""
    return submitter(tmp_path)


def shown(reports, width: int = 200) -> str:
    """What the reports look like in a terminal without colours."""
    out = io.StringIO()
    render(reports, Console(file=out, width=width, force_terminal=True, color_system=None))
    return out.getvalue()


def test_folders_are_searched_and_checkpoints_left_out(submit, tmp_path):
    (tmp_path / "a").mkdir()
    submit(name="a/00_tour.ipynb")
    (tmp_path / ".ipynb_checkpoints").mkdir()
    shutil.copy(RELEASE, tmp_path / ".ipynb_checkpoints/00_tour-checkpoint.ipynb")
    shutil.copy(RELEASE, tmp_path / "z.ipynb")
    reports = grade([tmp_path], 1)
    assert [Path(r.path).name for r in reports] == ["00_tour.ipynb", "z.ipynb"]
    assert [r.passed for r in reports] == [True, False]
    assert exit_code(reports) == 1
    assert exit_code(reports[:1]) == 0
    assert exit_code([]) == 1


def test_a_path_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist: give notebooks or folders"):
        grade([tmp_path / "nothing.ipynb"])
    with pytest.raises(FileNotFoundError, match="there is no notebook"):
        grade([tmp_path])


def test_what_cannot_be_read_in_a_folder_costs_no_other_notebook(submit, tmp_path):
    (tmp_path / "a.ipynb").symlink_to(tmp_path / "gone.ipynb")
    (tmp_path / "b.ipynb").symlink_to("b.ipynb")
    submit()
    reports = grade([tmp_path], 1)
    assert [Path(report.path).name for report in reports] == ["00_tour.ipynb", "a.ipynb", "b.ipynb"]
    assert [report.error.partition(":")[0] for report in reports] == ["", *["not readable"] * 2]
    assert exit_code(reports) == 1 and exit_code(reports[:1]) == 0
    with pytest.raises(FileNotFoundError, match="does not exist"):
        grade([tmp_path / "a.ipynb"])


def test_a_folder_that_cannot_be_searched_is_told(submit, tmp_path, monkeypatch):
    """Its submission would be missing without a word."""
    (tmp_path / "closed").mkdir()
    submit()
    scandir = submission.os.scandir

    def refuse(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(submission.os, "scandir", refuse)
    first, second = grade([tmp_path], 1)
    assert first.passed and Path(second.path).name == "closed"
    assert second.error == "not readable: This folder cannot be searched: Permission denied."


def test_what_is_given_twice_counts_once(submit, tmp_path):
    path = submit()
    (tmp_path / "a").mkdir()
    reports = grade([path, tmp_path, tmp_path / "a" / ".." / path.name], 1)
    assert [report.path for report in reports] == [str(path)]


def test_lessons_are_no_submissions(submit, tmp_path):
    lesson = tmp_path / "lesson.ipynb"
    shutil.copy(ROOT / "lessons/00_tour.ipynb", lesson)
    with pytest.raises(FileNotFoundError, match="there is no notebook"):
        grade([tmp_path])
    path = submit()
    assert [report.path for report in grade([tmp_path], 1)] == [str(path)]
    report, result = graded(lesson)
    assert result.status == "a lesson"
    assert report.error == (
        "a lesson: This is a lesson; the exercises are in exercises/00_tour.ipynb."
    )


def test_an_exercise_copied_into_a_lesson_is_a_submission(submit, tmp_path):
    path = submit()
    data = json.loads(path.read_text(encoding="utf-8"))
    data["metadata"]["minipaged"]["kind"] = "lesson"
    path.write_text(json.dumps(data), encoding="utf-8")
    [report] = grade([tmp_path], 1)
    assert report.passed


def test_a_missing_release_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(shipped, "__file__", str(tmp_path / "a/b/shipped.py"))
    with pytest.raises(FileNotFoundError, match="run `minipaged dev build`"):
        shipped.exercise_folder()
    with pytest.raises(FileNotFoundError, match=r"00_tour.ipynb is missing: run `minipaged dev"):
        grade([RELEASE], 1, course=shipped.Course(catalog(), tmp_path))


def test_reports_for_people_and_for_programs(submit):
    source = "def blocks_needed(n, b):\n    raise ValueError('[red]\\x1b[2J≤ å 火')\n"
    reports = grade([submit(source, name="ä火 b.ipynb"), submit()], 3)
    text = shown(reports)
    assert "1 of 2 points; hidden checks from --seed 3" in text
    assert "Your code raised ValueError: [red]\ufffd[2J≤ å 火, in line 2 of the cell" in text
    assert "\x1b[2J" not in text
    data = json.loads(to_json(reports))
    assert (data["points"], data["max_points"], data["passed"]) == (1, 2, False)
    assert [r["passed"] for r in data["reports"]] == [False, True]
    assert data["reports"][0]["path"].endswith("ä火 b.ipynb")
    assert data["reports"][0]["results"][0]["status"] == "failed"


def test_no_control_character_reaches_the_terminal(submit):
    report, result = graded(submit("\x1b[31m\x1b[2J)(\n"))
    assert result.status == "not Python"
    assert "\x1b" not in result.reason
    odd = Result("00.1", "f", 0, 1, "fail\x1b[2J", "why\x1b[31m", 0, 9)
    reports = [
        report,
        Report("a\x1b[2J.ipynb", "00", 1, (odd,), ("note\x07",)),
        Report("b\x9b.ipynb", "", 1, (), error="error\x1b]0;x\x07"),
    ]
    text = shown(reports)
    assert not {c for c in text if not c.isprintable()} - {"\n"}
    assert "why\ufffd[31m" in text


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["/x/ada/00_tour.ipynb", "/x/bob/00_tour.ipynb"], ["ada/00_tour ", "bob/00_tour "]),
        (["some/folder/00_tour.ipynb"], ["\n 00_tour "]),
        (["/x/a.ipynb", "y/b.ipynb"], ["/x/a.ipynb", "y/b.ipynb"]),
        (["/x/a.ipynb", "/y/b.ipynb"], ["/x/a.ipynb", "/y/b.ipynb"]),
        ([], []),
    ],
)
def test_paths_are_shown_from_their_common_folder_on(paths, names):
    result = Result("00.1", "blocks_needed", 0, 1, "failed", "Why.", 0, 33)
    text = shown([Report(path, "00", 1, (result,)) for path in paths], width=80)
    assert [name for name in names if name not in text] == []
    if names and not names[0].startswith("/"):
        assert "/x" not in text
        assert "some" not in text
        assert text.count("00_tour") == 2 * len(paths)


def test_names_stay_whole_in_a_terminal_of_80_columns():
    names = ["01_fragmentation", "a_long_name_of_ada/01_fragmentation"]
    result = Result("01.1", "kv_bytes_per_token", 0, 1, "not Python", "", 10, 19)
    reports = [Report(f"/x/{name}.ipynb", "01", 1, (result,)) for name in names]
    for some in (reports[:1], reports):
        lines = shown(some, width=80).splitlines()
        assert max(map(len, lines)) <= 80
        [row] = [
            line
            for line in lines
            if line.strip().startswith("01_fragmentation  ") and "01.1" in line
        ]
        assert "01.1 kv_bytes_per_token" in row and "10 of 19" in row and "not Python" in row
    assert "a_long_name_of_ada/" in [line.split()[0] for line in lines if line.split()]
    assert "a_long_name_of_ada/01_fragmentation " in shown(reports, width=100)


def test_a_notebook_stands_once_in_the_table_and_has_a_subtotal():
    def result(number, points):
        status = "passed" if points else "failed"
        return Result(f"01.{number}", "f", points, 2, status, "", 3 * points, 6)

    reports = [
        Report("/x/ada/01.ipynb", "01", 1, (result(1, 2), result(2, 0))),
        Report("/x/bob/01.ipynb", "01", 1, (result(1, 0), result(2, 0))),
        Report("/x/eve/00.ipynb", "00", 1, (Result("00.1", "g", 1, 1, "passed", "", 5, 5),)),
    ]
    lines = [line.split() for line in shown(reports).splitlines() if line.strip()]
    assert [line for line in lines if line[0] in ("ada/01", "bob/01", "eve/00")] == [
        ["ada/01", "01.1", "f", "2", "of", "2", "6", "of", "6", "passed"],
        ["bob/01", "01.1", "f", "0", "of", "2", "0", "of", "6", "failed"],
        ["eve/00", "00.1", "g", "1", "of", "1", "5", "of", "5", "passed"],
    ]
    subtotals = [line for line in lines if line[0] == "together"]
    assert subtotals == [["together", "2", "of", "4"], ["together", "0", "of", "4"]]
    assert "3 of 9 points" in shown(reports)


def test_exercises_of_another_lesson_in_a_notebook_are_told(submit):
    def paste(cells):
        cells.append({**cells[-1], "id": "ex-02-1", "cell_type": "code", "metadata": {}})

    report, result = graded(submit(change=paste))
    assert result.passed
    assert report.notes == (
        "ex-02-1 is of lesson 02 and was not graded: this notebook counts as lesson 00",
    )
