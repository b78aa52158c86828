"""Grading: points for what is right, a named reason for all else, and nothing that can be faked."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from submissions import RELEASE, RIGHT, ROOT, graded, submitter

from minipaged.course import grade as grading
from minipaged.course.checks import lesson_00
from minipaged.course.grade import grade
from minipaged.course.notebook import solved_notebook, text_of


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
    notebook = solved_notebook(
        ROOT / "solutions/00_tour.py", grading.catalog().lesson("00"), grading.catalog()
    )
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
    _, result = graded(submit(source))
    assert (result.points, result.status) == (0, "not your own")
    assert result.reason == "blocks_needed is minipaged's own, not yours: define it yourself."


# nothing that can be faked (cases 42 and 43)

FAKES = {
    "print passed": (
        "def blocks_needed(n, b):\n    print('PASSED')\n",
        "failed", "The result was printed ('PASSED'), but nothing was returned",
    ),
    "equal to everything": (
        "class Yes:\n    __eq__ = lambda self, other: True\n    __hash__ = None\n"
        "def blocks_needed(n, b):\n    return Yes()\n",
        "failed", "An object of class Yes was returned",
    ),
    "os._exit at the top": (
        RIGHT + "import os\nos._exit(0)\n",
        "ended early", "ended before it had answered (exit code 0)",
    ),
    "os._exit when called": (
        "import os\ndef blocks_needed(n, b):\n    os._exit(0)\n",
        "ended early", "Nothing was checked, so nothing is passed",
    ),
    "sys.exit at the top": (
        RIGHT + "import sys\nsys.exit(0)\n",
        "cell fails", "ended the program (SystemExit)",
    ),
    "sys.exit when called": (
        "import sys\ndef blocks_needed(n, b):\n    sys.exit(0)\n",
        "failed", "ended the program (SystemExit)",
    ),
    "kill": (
        RIGHT + "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
        "ended early", "killed by signal 9",
    ),
    "its own answer": (
        RIGHT + "import os\nfor fd in range(3, 20):\n    try: os.write(fd, b'{\"passed\": true}')\n"
        "    except OSError: pass\nos._exit(0)\n",
        "no answer", "wrote something else where its answer belongs",
    ),
    "too few observations": (
        "import minipaged.course.script as s\ns.run = lambda *a: []\n" + RIGHT,
        "no answer", "wrote something else where its answer belongs",
    ),
    "a patched comparison": (
        "import minipaged.course.plain as p, minipaged.course.verdict as v\n"
        "p.same = lambda a, b: True\nv.judge = lambda *a: []\n"
        "def blocks_needed(n, b):\n    return 7\n",
        "failed", "blocks_needed(37, 16) gives 7, expected 3",
    ),
    "an exception that lies": (
        "class Odd(Exception):\n    def __str__(self): raise SystemExit\n"
        "def blocks_needed(n, b):\n    raise Odd\n",
        "failed", "Your code raised Odd",
    ),
    "asking for input": (
        "def blocks_needed(n, b):\n    return int(input())\n",
        "failed", "EOFError",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "status", "reason"), FAKES.values(), ids=FAKES)
def test_faked_success_is_worth_nothing(submit, source, status, reason):
    _, result = graded(submit(source))
    assert (result.points, result.status) == (0, status)
    assert reason in result.reason


def test_an_endless_loop_ends_with_the_time_limit(submit):
    began = time.monotonic()
    _, result = graded(submit("def blocks_needed(n, b):\n    while True: pass\n"), seconds=1)
    assert (result.status, result.points) == ("time limit", 0)
    assert "No answer within 1 seconds: is there a loop that never ends?" in result.reason
    assert time.monotonic() - began < 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_children_are_ended_and_cannot_hold_up_the_grader(submit, tmp_path):
    note = tmp_path / "pid"
    source = (
        f"import os, time\nnote = {str(note)!r}\nif os.fork() == 0:\n"
        "    open(note, 'w').write(str(os.getpid()))\n    time.sleep(60)\n    os._exit(0)\n"
        "while not os.path.exists(note) or not open(note).read(): pass\n"
    )
    began = time.monotonic()
    assert graded(submit(source + RIGHT))[0].passed
    assert time.monotonic() - began < 10
    child = Path(f"/proc/{note.read_text()}/stat")
    time.sleep(0.1)
    assert not child.exists() or child.read_text().split(")")[1].split()[0] == "Z"


@pytest.mark.skipif(os.name != "posix", reason="memory is limited on POSIX systems only")
def test_memory_is_limited(submit):
    _, result = graded(submit("def blocks_needed(n, b):\n    return len(bytearray(3 * 2**30))\n"))
    assert "Your code raised MemoryError" in result.reason


def test_endless_printing_is_cut_short(submit):
    source = "def blocks_needed(n, b):\n    print('x' * 10**6)\n    return -(-n // b)\n"
    assert graded(submit(source))[0].passed


def test_what_is_printed_past_python_does_not_reach_the_answer(submit):
    source = (
        "import os\ndef blocks_needed(n, b):\n    os.write(1, b'PASSED')\n"
        "    os.system('echo PASSED; echo FAILED >&2')\n    return -(-n // b)\n"
    )
    assert graded(submit(source))[0].passed


def test_the_graders_environment_and_folder_stay_its_own(submit, monkeypatch):
    monkeypatch.setenv("GRADER_TOKEN", "secret")
    source = (
        "import os\nhome = os.path.expanduser('~')\nassert home == os.getcwd()\n"
        "assert os.listdir() == []\nassert 'GRADER_TOKEN' not in os.environ\n"
    )
    assert graded(submit(source + RIGHT))[0].passed
