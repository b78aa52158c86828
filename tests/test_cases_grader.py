"""Field cases 41 to 48 and 50: what went wrong in other graders and notebook tools."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
import time

import nbformat
import pytest
from fakes import FAKES
from submissions import RELEASE, RIGHT, graded, minipaged, submitter, three_exercises

from minipaged.course.checks import lesson_00
from minipaged.course.dev.execute import _require_stable
from minipaged.course.dev.notebook import BuildError
from minipaged.course.grade import exit_code, grade
from minipaged.course.verdict import judge


@pytest.fixture
def submit(tmp_path):
    """Writes a submission of lesson 00 and returns its path."""
    return submitter(tmp_path)


@pytest.fixture
def three(tmp_path, monkeypatch):
    """A course of three exercises, a point each."""
    return three_exercises(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "second",
    [
        "def two(n, b):\n    while True: pass",
        "while True: pass\ndef two(n, b): return 1",
        "import time\ndef two(n, b):\n    time.sleep(3600)",
        "def two(n, b):\n    while True:\n        try: n / 0\n        except BaseException: pass",
    ],
)
def test_case_41_an_endless_loop_costs_only_its_own_exercise(three, second):
    began = time.monotonic()
    [report] = three.grade(three.submit(None, second), seconds=3.0)
    assert [result.points for result in report.results] == [1, 0, 1]
    assert [result.status for result in report.results] == ["passed", "time limit", "passed"]
    assert "No answer within 3 seconds" in report.results[1].reason
    assert time.monotonic() - began < 20


DYING = {
    "abort": "import os\nos.abort()",
    "exit": "import os\nos._exit(0)",
    "killed": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "crash": "import ctypes\nctypes.string_at(0)",
}


@pytest.mark.parametrize("death", DYING.values(), ids=DYING)
@pytest.mark.parametrize("guarded", [True, False])
def test_case_42_a_dead_process_passes_nothing(three, death, guarded):
    second = "def two(n, b):\n    " + death.replace("\n", "\n    ")
    if guarded:  # around the guard, through a module that may be imported
        second = second.replace("import os\n", "import random; os = random._os\n")
    [report] = three.grade(three.submit(None, second), seconds=8, guarded=guarded)
    assert [result.points for result in report.results] == [1, 0, 1]
    refused = guarded and ("signal" in death or "ctypes" in death)
    if refused:
        assert "cannot be imported in a graded cell" in report.results[1].reason
    else:
        assert report.results[1].status == "ended early"
        assert "Nothing was checked, so nothing is passed." in report.results[1].reason
    assert exit_code([report]) == 1


@pytest.mark.parametrize(("source", "status", "reason"), FAKES.values(), ids=FAKES)
def test_case_43_faked_success_is_worth_nothing(submit, source, status, reason):
    path = submit(source)
    _, below = graded(path, guarded=False)
    assert (below.points, below.status) == (0, status)
    assert reason in below.reason
    _, result = graded(path)
    assert result.points == 0
    if "import " in source:
        assert result.status == "cell fails"
        assert "cannot be imported in a graded cell" in result.reason
    else:
        assert result == below


def test_case_43_absence_of_an_error_is_no_pass():
    check = lesson_00.CHECKS["00.1"]
    with pytest.raises(ValueError, match="the number of observations is not"):
        judge(check, check.visible(), [], "blocks_needed")


# what students do to test cells


def test_case_44_deleted_and_edited_checks_are_rebuilt(three):
    def change(data):
        data["cells"] = [cell for cell in data["cells"] if cell["id"] != "check-00-1"]
        for cell in data["cells"]:
            if cell["id"] == "check-00-2":
                cell["source"] = "print('all passed')"
                cell["metadata"]["nbgrader"]["points"] = 100

    wrong = "def two(n, b):\n    return 7\n"
    [report] = three.grade(three.submit(None, wrong, change=change))
    assert [result.points for result in report.results] == [1, 0, 1]
    assert report.max_points == 3
    assert report.notes == (
        "the check cell check-00-1 is gone: the release's checks were run",
        "check-00-2 was edited: the release's checks were run",
    )


def test_case_44_a_deleted_solution_is_named_and_the_maximum_stays(three):
    def change(data):
        data["cells"] = [cell for cell in data["cells"] if cell["id"] != "ex-00-2"]

    [report] = three.grade(three.submit(change=change))
    assert [result.points for result in report.results] == [1, 0, 1]
    assert (report.max_points, report.results[1].status) == (3, "missing")
    assert "The cell ex-00-2 is not in the notebook: put it back." in report.results[1].reason


def test_case_44_a_duplicate_id_is_named_and_counts_once(three):
    def change(data):
        [own] = [cell for cell in data["cells"] if cell["id"] == "ex-00-2"]
        [check] = [cell for cell in data["cells"] if cell["id"] == "check-00-3"]
        data["cells"] += [{**own, "source": "def two(n, b):\n    return 0\n"}, check]

    [report] = three.grade(three.submit(change=change))
    assert [result.points for result in report.results] == [1, 0, 1]
    assert report.max_points == 3
    assert report.notes == (
        "2 cells have the id ex-00-2: the last one counts, once",
        "2 cells have the id check-00-3: the last one counts, once",
    )


def test_case_45_exit_codes(three):
    unsolved = "def two(n, b):\n    raise NotImplementedError()\n"
    [solved], [half] = (three.grade(three.submit(None, second)) for second in (None, unsolved))
    assert (solved.points, exit_code([solved])) == (3, 0)
    assert (half.points, exit_code([half]), exit_code([solved, half])) == (2, 1, 1)
    assert exit_code([]) == 1


@pytest.mark.parametrize(("second", "code"), [(None, 0), ("def two(n, b):\n    return 1", 1)])
def test_case_45_an_exercise_without_points(tmp_path, monkeypatch, second, code):
    course = three_exercises(tmp_path, monkeypatch, points=(0, 0, 0))
    [report] = course.grade(course.submit(None, second))
    assert (report.points, report.max_points) == (0, 0)
    assert [result.passed for result in report.results] == [True, code == 0, True]
    assert exit_code([report]) == code


def test_case_45_exit_codes_of_the_command(submit):
    assert minipaged("grade", submit()).returncode == 0
    assert minipaged("grade", RELEASE).returncode == 1
    ended = minipaged("grade", "nowhere.ipynb")
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert b"does not exist" in ended.stderr


def test_case_46_cell_ids_do_not_matter(submit):
    def age(cells):
        for cell in cells:
            del cell["id"]

    def insert(cells):
        cells.insert(2, {"cell_type": "code", "metadata": {}, "source": ["1 / 0"], "outputs": []})

    def clash(cells):
        for cell in cells:
            cell["id"] = "same"

    paths = [
        submit(change=change, name=f"00_tour_{change.__name__}.ipynb")
        for change in (age, insert, clash)
    ]
    aged = json.loads(paths[0].read_text(encoding="utf-8"))
    paths[0].write_text(json.dumps({**aged, "nbformat_minor": 4}), encoding="utf-8")
    reports = grade(paths, 1)
    assert [(report.passed, report.notes) for report in reports] == [(True, ())] * 3
    ended = minipaged("grade", *paths)
    assert (ended.returncode, ended.stderr) == (0, b"")


PIECES = (
    "import time\nfor word in ('one', 'two'):\n    print(word, flush=True)\n    time.sleep(0.1)"
)


def test_case_47_stdout_in_pieces_or_in_one_compares_equal(tmp_path):
    def cell(number, *texts):
        outputs = [nbformat.v4.new_output("stream", name="stdout", text=text) for text in texts]
        return nbformat.v4.new_code_cell(
            PIECES, id=f"cell-{number}", outputs=outputs, execution_count=number
        )

    cells = [cell(1, "one\ntwo\n"), cell(2, "one\n", "two\n"), cell(3, "one\n", "three\n")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "", "language": ""}
    path = tmp_path / "pieces.ipynb"
    nbformat.write(notebook, path)
    command = "-m pytest -p no:cacheprovider --color=no --nbval --nbval-current-env"
    ran = subprocess.run(
        [sys.executable, *command.split(), "--nbval-cell-timeout=60", path],
        capture_output=True,
        timeout=120,
        cwd=tmp_path,
    )
    assert b"1 failed, 2 passed" in ran.stdout, ran.stdout.decode()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("<function f at 0x7f71308e18d0>", "an address"),
        ("at 12:30:07", "a time of day"),
        ("block hash 9f86d081884c7d65", ""),
        ("flags 0xff, page 0x1f", ""),
    ],
)
def test_case_47_addresses_are_never_stored_and_other_hex_is(text, what):
    output = nbformat.v4.new_output("stream", name="stdout", text=text)
    cell = nbformat.v4.new_code_cell("…", id="00-code-1", outputs=[output])
    notebook = nbformat.v4.new_notebook(cells=[cell])
    if what:
        with pytest.raises(BuildError, match=re.escape(f"cell 00-code-1 prints {what}")):
            _require_stable(notebook, ())
    else:
        _require_stable(notebook, ())


LOCALES = {
    "a cp1252 terminal": {"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "cp1252"},
    "cp1252 and the C locale": {"LC_ALL": "C", "PYTHONIOENCODING": "cp1252"},
}


@pytest.mark.skipif(os.name == "nt", reason="locales are set by environment variables")
@pytest.mark.parametrize("locale", LOCALES.values(), ids=LOCALES)
def test_case_48_text_and_paths_beyond_ascii(submit, tmp_path, locale):
    odd = "≤ å 火"
    (tmp_path / odd).mkdir()
    source = f"def blocks_needed(n, b):\n    raise ValueError('{odd}')\n"
    wrong = submit(source, name=f"{odd}/00_tour.ipynb")
    right = submit(f"SIGN = '{odd}'\n{RIGHT}", name=f"{odd}/00_tour_2.ipynb")
    plain = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TMPDIR": str(tmp_path / odd)}
    ended = minipaged("grade", tmp_path / odd, "--json", **plain, **locale)
    assert (ended.returncode, ended.stderr) == (1, b"")
    first, second = json.loads(ended.stdout)["reports"]
    assert (first["passed"], second["passed"]) == (False, True)
    assert f"ValueError: {odd}, in line 2" in first["results"][0]["reason"]
    paths = [os.fsencode(report["path"]) for report in (first, second)]
    assert paths == [os.fsencode(path) for path in (wrong, right)]
    ended = minipaged("grade", tmp_path / odd, **plain, **locale)
    assert (ended.returncode, ended.stderr) == (1, b"")
    assert "ValueError: ? å ?".encode("cp1252") in ended.stdout


NOISY = """
import warnings
warnings.simplefilter("always")
warnings.warn("careful")
odd = "\\d"
if 3 is 3:
    warnings.warn("deprecated", DeprecationWarning)
"""


def test_case_50_warnings_cost_nothing(submit, capfd):
    path = submit(NOISY + RIGHT.replace("return", "warnings.warn('again')\n    return"))
    assert graded(path)[0].passed
    written = "import os, sys\nprint('careful', file=sys.stderr)\nos.write(2, b'careful')\n"
    assert graded(submit(written + RIGHT), guarded=False)[0].passed
    assert capfd.readouterr() == ("", "")


def test_case_50_warnings_of_torch_cost_nothing(submit, monkeypatch):
    check = dataclasses.replace(lesson_00.CHECKS["00.1"], tensors=True)
    monkeypatch.setattr(lesson_00, "CHECKS", {"00.1": check})
    source = (
        "import torch\ndef blocks_needed(n, b):\n    t = torch.tensor(torch.tensor([n, b]))\n"
        "    return -(-int(t[0]) // int(t[1]))\n"
    )
    assert graded(submit(source))[0].passed
