"""check(): right answers pass, and each wrong idea is told what is wrong with it."""

from __future__ import annotations

import gc
import math
import subprocess
import sys
import textwrap
import warnings

import pytest

from minipaged.course.catalog import catalog
from minipaged.course.check import CheckFailed, check
from minipaged.course.checks import lesson_00
from minipaged.course.checks.base import check_of
from minipaged.course.faults import say_fault
from minipaged.course.script import Fault, run
from minipaged.course.verdict import judge

RIGHT = {
    "negated floor": "return -(-num_tokens // block_size)",
    "add, then divide": "return (num_tokens + block_size - 1) // block_size",
    "divmod": "full, rest = divmod(num_tokens, block_size)\nreturn full + bool(rest)",
    "through a float": "import math\nreturn math.ceil(num_tokens / block_size)",
    "a loop": "return sum(1 for _ in range(0, num_tokens, block_size))",
    "prints meanwhile": "print('debugging')\nreturn -(-num_tokens // block_size)",
    "complains meanwhile": (
        "import sys\nprint('careful', file=sys.stderr)\nreturn -(-num_tokens // block_size)"
    ),
}

# what the learner wrote, and what only this learner is told
WRONG = {
    "return num_tokens // block_size": "The count is rounded down",
    "return num_tokens // block_size + 1": "One block is added every time",
    "return round(num_tokens / block_size)": "rounded to the nearest whole number",
    "return -(-num_tokens // 16)": "Is 16 written into the code?",
    "return num_tokens // 16": "Is 16 written into the code?",
    "return -(-block_size // num_tokens)": "The arguments have changed places",
    "return block_size // num_tokens if num_tokens else 0": "The arguments have changed places",
    "return 1": "The answer is always the same",
    "return 0": "The answer is always the same",
    "return max(1, -(-num_tokens // block_size))": "All is right but for a request without tokens",
    "return num_tokens % block_size": "the number of tokens in the last block",
    "return -(-num_tokens // block_size) * block_size": "the number of slots in those blocks",
    "return -(-num_tokens // block_size) * 1.0": "The result is a float",
    "return num_tokens > block_size": "The result is a bool",
    "return str(-(-num_tokens // block_size))": "Return the number itself, not its text",
    "print(-(-num_tokens // block_size))": "write `return` where `print` stands",
    "-(-num_tokens // block_size)": "is a `return` missing?",
    "yield num_tokens": "is there a `yield` in the function?",
    "import numpy\nreturn numpy.ceil(num_tokens / block_size)": "class float64 was returned",
    "import numpy\nreturn -(-numpy.int64(num_tokens) // block_size)": "class int64 was returned",
    "raise NotImplementedError()": "Not solved yet: replace `raise NotImplementedError()`",
    "return num_tokens // 0": "raised ZeroDivisionError: integer division or modulo by zero, in",
    "import sys\nsys.exit(0)": "Your code ended the program (SystemExit)",
    "return num_tokens + block_size": "Work this case out on paper",
}


def define(body: str, filename: str = "<cell>"):
    """blocks_needed with this body, as a notebook cell would define it."""
    source = "def blocks_needed(num_tokens, block_size):\n" + textwrap.indent(body, "    ")
    namespace: dict = {}
    exec(compile(source, filename, "exec"), namespace)
    return namespace["blocks_needed"]


def printed(capfd, subject, **options) -> str:
    """What a failing check prints on stdout; nothing may be on stderr."""
    with pytest.raises(CheckFailed, match=r"^00\.1 blocks_needed: \d of 9 checks failed$"):
        check("00.1", subject, **options)
    out, err = capfd.readouterr()
    assert err == ""
    return " ".join(out.split())


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_right_answers_pass(capfd, body):
    assert check("00.1", define(body)) is None
    out, err = capfd.readouterr()
    assert "9 of 9 passed. 24 more checks run at grading." in out
    assert "FAILED" not in out
    assert err == ""


@pytest.mark.parametrize("body", WRONG)
def test_each_wrong_idea_has_its_own_message(capfd, body):
    out = printed(capfd, define(body))
    assert {said for said in WRONG.values() if said in out} == {WRONG[body]}
    assert 'Stuck? check("00.1", blocks_needed, hint=1) shows the first of 3 hints.' in out


def test_the_first_failure_is_shown_in_full(capfd):
    out = printed(capfd, define("return num_tokens // block_size + 1"))
    assert "The first failure: exactly full story Three blocks are full" in out
    assert "call blocks_needed(48, 16) expected 3 got 4 why" in out


def test_the_number_of_hidden_checks_is_true_for_every_seed():
    hidden = check_of(catalog().exercise("00.1")).hidden
    assert {len(hidden(seed)) for seed in range(50)} == {24}
    assert hidden(7) == hidden(7) != hidden(8)


@pytest.mark.parametrize("body", WRONG)
def test_hidden_checks_alone_catch_every_wrong_idea(body):
    subject, the_check = define(body), lesson_00.CHECKS["00.1"]
    for seed in range(20):
        cases = the_check.hidden(seed)
        seen = [run(case.operations, subject) for case in cases]
        assert not all(v.passed for v in judge(the_check, cases, seen, "blocks_needed"))


def test_hidden_checks_stand_on_and_beside_the_borders_of_blocks():
    for seed in range(20):
        pairs = [case.operations[0].args for case in lesson_00.hidden(seed)]
        for beside in (-1, 0, 1):
            assert sum(n > 0 and n % b == beside % b for n, b in pairs) >= 5


def test_rounding_through_a_float_is_exact_where_we_ask():
    cases = [case for seed in range(200) for case in lesson_00.hidden(seed)]
    pairs = [case.operations[0].args for case in cases + lesson_00.visible()]
    assert all(tokens < 2**20 for tokens, _ in pairs)
    assert all(math.ceil(n / b) == lesson_00.blocks_that_hold(n, b) for n, b in pairs)
    # the reason for the limit: from 2**53 on it is not
    assert math.ceil((2**53 + 1) / 2) != lesson_00.blocks_that_hold(2**53 + 1, 2)


class EqualToAll:
    """Claims to equal everything."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


class Three(int):
    """An int by inheritance."""


@pytest.mark.parametrize("value", [EqualToAll(), Three(3)])
def test_only_plain_values_count(capfd, value):
    out = printed(capfd, lambda num_tokens, block_size: value)
    assert f"An object of class {type(value).__name__} was returned, but an int" in out


@pytest.mark.parametrize("name", ["float64", "int64", "Fraction"])
def test_a_number_of_another_class_is_to_be_wrapped(capfd, name):
    out = printed(capfd, lambda num_tokens, block_size: type(name, (float,), {})(3))
    assert f"class {name} was returned, but an int (a whole number) is expected. Wrap it" in out
    assert "Wrap it in int(...)." in out


def test_a_coroutine_is_named_and_closed(capfd):
    async def blocks_needed(num_tokens, block_size):
        return -(-num_tokens // block_size)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out = printed(capfd, blocks_needed)
        gc.collect()
    assert "This is a coroutine: is there an `async` before `def`?" in out
    assert [str(warning.message) for warning in caught] == []


def test_a_line_that_is_not_known_is_not_quoted():
    fault = Fault(["KeyError"], "3", 7, "")
    assert say_fault(fault) == "Your code raised KeyError: 3, in line 7 of the cell."


def test_an_exception_shows_the_learners_own_line(capfd, tmp_path):
    body = "import statistics\nlimit = num_tokens\nreturn statistics.mean([])"
    out = printed(capfd, define(body, filename=str(tmp_path / "gone.py")))
    assert "StatisticsError" in out
    assert "in line 4 of the cell" in out
    assert "script.py" not in out


def test_an_exception_in_a_helper_shows_the_helpers_line(capfd):
    namespace: dict = {}
    helper = "def helper(n):\n    n += 1\n    oops\n"
    exec(compile(helper, "<cell helper>", "exec"), namespace)
    subject = define("return helper(num_tokens)")
    subject.__globals__["helper"] = namespace["helper"]
    assert "name 'oops' is not defined, in line 3 of the cell" in printed(capfd, subject)


def test_wrong_parameters_are_said_to_be_wrong_parameters(capfd):
    out = printed(capfd, lambda num_tokens: num_tokens)
    assert "takes 1 positional argument but 2 were given. It happened at the call itself" in out


def test_what_the_learner_prints_is_shown_and_does_not_break_the_table(capfd):
    out = printed(capfd, define("print('so far so good')\nreturn 7"))
    assert "printed 'so far so good'" in out
    assert out.count("so far so good") == 1


def test_hints_are_given_when_asked_for(capfd):
    hints = catalog().exercise("00.1").hints
    for number, hint in enumerate(hints, 1):
        out = printed(capfd, define("return 0"), hint=number)
        assert f"hint {number} of 3: {hint}" in out


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (("00.9", len), {}, ValueError, "there is no exercise '00.9'"),
        (("00.1", 3), {}, TypeError, "was given int 3: leave out the parentheses"),
        (("00.1", lesson_00.blocks_that_hold), {}, TypeError, "minipaged's own"),
        (("00.1", len), {"hint": 4}, ValueError, "hint is 4: give 1, 2 or 3"),
    ],
)
def test_a_wrong_call_is_refused_in_one_line(arguments, options, error, message):
    with pytest.raises(error) as caught:
        check(*arguments, **options)
    assert message in str(caught.value)


def test_a_notebook_shows_one_line_instead_of_our_traceback():
    assert CheckFailed("00.1: 2 of 9")._render_traceback_() == ["CheckFailed: 00.1: 2 of 9"]


def test_a_check_loads_neither_torch_nor_numpy():
    code = (
        "import sys\n"
        "from minipaged.course.check import check\n"
        "check('00.1', lambda n, b: -(-n // b))\n"
        "print(sorted({'torch', 'numpy', 'nbformat', 'rich'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert done.stderr == ""
