"""Grading: points for what is right, a named reason for all else, and nothing that can be faked."""

from __future__ import annotations

import dataclasses
import json
import os

import pytest
from submissions import RELEASE, RIGHT, ROOT, graded, submitter

from minipaged.course.catalog import catalog
from minipaged.course.checks import lesson_00
from minipaged.course.dev.notebook import solved_notebook, text_of
from minipaged.course.grade import grade
from minipaged.course.sandbox import Limits, NoAnswer, read_answer
from minipaged.course.script import Case, Operation


@pytest.fixture
def submit(tmp_path):
    """Writes a submission of lesson 00 and returns its path."""
    return submitter(tmp_path)


def test_solved_gets_full_points(submit):
    report, result = graded(submit())
    assert (result.points, result.status, result.reason) == (1, "passed", "")
    assert (result.num_passed, result.num_cases) == (33, 33)
    assert report.passed
    assert report.notes == ()


def test_the_solution_notebook_gets_full_points_without_being_executed(tmp_path):
    course = catalog()
    notebook = solved_notebook(ROOT / "solutions/00_tour.py", course.lesson("00"), course)
    path = tmp_path / "handed_in.ipynb"
    path.write_text(text_of(notebook), encoding="utf-8")
    assert graded(path)[0].passed


def test_unsolved_gets_nothing_and_is_called_unsolved():
    _, result = graded(RELEASE)
    assert (result.points, result.status) == (0, "unsolved")
    assert "replace `raise NotImplementedError()` (line 4 of the cell)" in result.reason


def test_imports_and_helpers_in_the_cell_work(submit):
    source = (
        "import math\nfrom dataclasses import dataclass\n\n"
        "@dataclass\nclass Size:\n    n: 'int'\n\n"
        "def up(a, b):\n    return math.ceil(Size(a).n / b)\n\n"
        "blocks_needed = lambda n, b: up(n, b)\n"
    )
    assert graded(submit(source))[0].passed


def test_a_slow_but_right_answer_passes(submit):
    source = (
        "def blocks_needed(n, b):\n    blocks = 0\n    while n > 0:\n        n -= b\n"
        "        blocks += 1\n    return blocks\n"
    )
    for seed in range(3):
        assert graded(submit(source), seed)[0].passed


def test_a_visible_failure_is_quoted_and_a_hidden_one_is_not(submit):
    _, result = graded(
        submit(RIGHT.replace("-(-num_tokens // block_size)", "num_tokens // 16 + 1"))
    )
    assert result.status == "failed"
    assert result.reason.startswith("blocks_needed(48, 16) gives 4, expected 3. ")
    seen = {case.operations[0].args: lesson_00._oracle(case)[0] for case in lesson_00.visible()}
    source = f"def blocks_needed(n, b):\n    return {seen}.get((n, b), 0)\n"
    _, result = graded(submit(source))
    assert (result.status, result.num_passed) == ("failed", 9 + 1)
    assert result.reason == "A hidden check fails. Another value was expected."


def test_the_seed_makes_the_hidden_checks(submit):
    pairs = {seed: {c.operations[0].args for c in lesson_00.hidden(seed)} for seed in (5, 6)}
    [unlucky, *_] = sorted(pairs[5] - pairs[6], reverse=True)
    wrong_once = f"if (num_tokens, block_size) == {unlucky}: return 0\n    return"
    path = submit(RIGHT.replace("return", wrong_once))
    (first, failed), (again, _), (_, passed) = (graded(path, seed) for seed in (5, 5, 6))
    assert first == again
    assert (failed.num_passed, passed.num_passed) == (32, 33)
    assert len({report.seed for report in grade([submit(), submit(name="b.ipynb")])}) == 1


CURIOUS = {
    "raise ValueError((n, b))": "Your code raised ValueError, in line 4 of the cell.",
    "raise type(str((n, b)), (KeyError,), {})": "Your code raised KeyError, in line 4 of the cell.",
    "raise (n, b) and NameError(f'{n}')": (
        "Your code raised NameError, in line 4 of the cell. Only this cell is graded: it must hold "
        "the imports and helpers that it uses."
    ),
    "print((n, b))": (
        "The result was printed, but nothing was returned: write `return` where `print` stands."
    ),
    "return type(str((n, b)), (), {})()": (
        "An object of some other class was returned, but an int (a whole number) is expected. Only "
        "plain values count, whatever they claim to be equal to."
    ),
    "return str((n, b))": (
        "The result is a str (text), but an int (a whole number) is expected. Return the number "
        "itself, not its text."
    ),
}


@pytest.mark.parametrize("line", CURIOUS)
def test_a_hidden_case_cannot_be_read_out(submit, line):
    seen = {case.operations[0].args: lesson_00._oracle(case)[0] for case in lesson_00.visible()}
    source = f"def blocks_needed(n, b):\n    if (n, b) in {seen}:\n"
    source += f"        return {seen}[n, b]\n    {line}\n"
    _, result = graded(submit(source))
    assert result.reason == f"A hidden check fails. {CURIOUS[line]}"


def test_what_another_cell_imports_is_missed_at_the_call_as_well(submit):
    _, result = graded(submit("def blocks_needed(n, b):\n    return math.ceil(n / b)\n"))
    assert result.status == "failed"
    assert "name 'math' is not defined, in line 2 of the cell" in result.reason
    assert result.reason.endswith("it must hold the imports and helpers that it uses.")


def test_the_reference_is_nobodys_own_work(submit):
    source = "from minipaged.course.checks.lesson_00 import blocks_that_hold as blocks_needed\n"
    _, result = graded(submit(source), guarded=False)
    assert (result.points, result.status) == (0, "not your own")
    assert result.reason == "blocks_needed is minipaged's own, not yours: define it yourself."


@pytest.mark.parametrize("is_visible", [True, False])
def test_the_broken_rule_is_told_of_hidden_cases_as_well(submit, monkeypatch, is_visible):
    check = dataclasses.replace(
        lesson_00.CHECKS["00.1"], explain=lambda failure: "A block is never half."
    )
    monkeypatch.setattr(lesson_00, "CHECKS", {"00.1": check})
    seen = {case.operations[0].args: lesson_00._oracle(case)[0] for case in lesson_00.visible()}
    if is_visible:
        seen.pop((37, 4))
    for wrong, said in ((0, "A block"), (0.5, "The result is a float")):
        source = f"def blocks_needed(n, b):\n    return {seen}.get((n, b), {wrong})\n"
        reason = graded(submit(source))[1].reason
        begin = f"blocks_needed(37, 4) gives {wrong}, expected 10. " if is_visible else "A hidden"
        assert reason.startswith(begin)
        assert said in reason
        assert reason.endswith(" A block is never half.")


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="takes two processors")
def test_notebooks_are_graded_side_by_side_and_reported_in_order(submit, tmp_path):
    meeting = (
        "import os, time\nopen({own!r}, 'w').close()\nlate = time.time() + 8\n"
        "while not os.path.exists({other!r}) and time.time() < late: time.sleep(0.01)\n"
        "assert os.path.exists({other!r})\n"
    )
    notes = [str(tmp_path / name) for name in ("here", "there")]
    paths = [
        submit(meeting.format(own=own, other=other) + RIGHT, name=f"{k}.ipynb")
        for k, (own, other) in enumerate([notes, notes[::-1]])
    ]
    paths += [submit(name=f"{k}.ipynb") for k in range(2, 6)]
    reports = grade(paths, 1, limits=Limits(guarded=False))
    assert [report.path for report in reports] == [str(path) for path in paths]
    assert all(report.passed for report in reports)


def test_endless_printing_is_cut_short(submit):
    source = "def blocks_needed(n, b):\n    print('x' * 10**6)\n    return -(-n // b)\n"
    assert graded(submit(source))[0].passed


def no_rule(failure):
    raise OverflowError("int too large to convert to float")


@pytest.mark.parametrize("part", ["oracle", "diagnose", "explain"])
def test_a_check_that_fails_costs_this_exercise_and_stops_no_other(submit, monkeypatch, part):
    check = dataclasses.replace(lesson_00.CHECKS["00.1"], **{part: no_rule})
    monkeypatch.setattr(lesson_00, "CHECKS", {"00.1": check})
    wrong = submit("def blocks_needed(n, b):\n    return 7\n", name="a.ipynb")
    reports = grade([wrong, submit(name="b.ipynb")], 1)
    result = reports[0].results[0]
    assert (result.points, result.status, result.num_cases) == (0, "no verdict", 33)
    assert "OverflowError while judging" in result.reason and "by hand" in result.reason
    assert reports[1].results[0].status == ("no verdict" if part == "oracle" else "passed")


def answer(*observations) -> bytes:
    return json.dumps({"observations": [list(observations)]}).encode()


def test_a_value_of_what_is_kept_is_no_answer():
    """A worker reports none; what a check does with it is anybody's guess."""
    case = Case("kept", "A story.", (Operation((), keep="x"), Operation((), "x", "go")))
    kept, told = [None, None, "", None], [3, None, "", None]
    assert read_answer(answer(kept, told), "f", [case])[0][1].value == 3
    fault = [None, [["KeyError"], "", None, ""], "", None]
    assert read_answer(answer(fault, told), "f", [case])[0][0].fault.kinds == ["KeyError"]
    for wrong in (answer(told, told), answer(kept), answer([0, None, "", None], told)):
        with pytest.raises(NoAnswer, match="Nothing was checked"):
            read_answer(wrong, "f", [case])
