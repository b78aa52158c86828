"""Copies: the reference or the packaged solution under other names; and what is none."""

from __future__ import annotations

import ast
import inspect
import json
import re

import pytest
from submissions import RELEASE, SmallCourse
from typer.testing import CliRunner

from minipaged.cache.block import FreeQueue
from minipaged.cli import app
from minipaged.course.catalog import catalog
from minipaged.course.checks.base import Check
from minipaged.course.copies import MIN_NODES, copied_from
from minipaged.course.grade import exit_code, grade
from minipaged.course.script import Case, Operation
from minipaged.course.shape import shape_of

SOLUTION = '''class FreeQueue:
    """A queue on a dict."""

    def __init__(self, num_blocks: int) -> None:
        self._ids = dict.fromkeys(range(num_blocks))

    def _require(self, block_id: int, wanted: bool) -> None:
        if (block_id in self._ids) != wanted:
            raise ValueError(f"block {block_id} is queued: {not wanted}")

    def pop_head(self) -> int:
        if not self._ids:
            raise IndexError("the free queue is empty")
        first = next(iter(self._ids))
        del self._ids[first]
        return first

    def append(self, block_id: int) -> None:
        self._require(block_id, False)
        self._ids[block_id] = None

    def remove(self, block_id: int) -> None:
        """Take one out."""
        self._require(block_id, True)
        del self._ids[block_id]
'''
# the same by somebody who changed what is easily changed
DISGUISED = """import math


class FreeQueue:
    def append(self, b):
        # puts it last
        self.check_it(b, False)
        self.store[b] = None

    def __init__(this, n):
        this.store = dict.fromkeys(range(n))

    def remove(self, x):
        self.check_it(x, True)
        del self.store[x]

    def pop_head(self):
        "Take the first one."
        if not self.store:
            raise IndexError("the free queue is empty")
        head: int = next(iter(self.store))
        del self.store[head]
        return head

    def check_it(self, which, good):
        if (which in self.store) != good:
            raise ValueError(f"block {which} is queued: {not good}")
""".replace("check_it", "_check_it")
OWN = SOLUTION.replace("next(iter(self._ids))", "list(self._ids)[0]")


def case() -> Case:
    """Make a queue of two, take both."""
    take = Operation(target="queue", method="pop_head")
    return Case("two", "Two ids.", (Operation((2,), keep="queue"), take, take))


CHECK = Check(lambda: [case()], lambda seed: [case()], lambda case: [0, 1])


@pytest.fixture
def course(tmp_path, monkeypatch):
    """One exercise whose solution is SOLUTION and whose reference is the packaged FreeQueue."""
    exercise = ("FreeQueue", 2, SOLUTION)
    return SmallCourse(tmp_path, monkeypatch, [exercise], check=CHECK, component="free_queue")


# what the packaged FreeQueue needs of the module around it
AROUND = "from __future__ import annotations\n\n_OFF = -1\n\n\n"
REFERENCE = AROUND + inspect.getsource(FreeQueue)


def renamed_reference() -> str:
    """The packaged FreeQueue with nothing left of the names that are its own."""
    source = REFERENCE.replace("_OFF", "NOWHERE").replace("block_id", "number")
    source = re.sub(r"\bself\b", "me", re.sub(r"__slots__.*\n", "", source))
    return re.sub(r"(me\.|def )_([a-z]\w+)", r"\1_my_\2", source)


COPIES = {
    "the solution": (SOLUTION, "the packaged solution"),
    "the solution in disguise": (DISGUISED, "the packaged solution"),
    "the reference": (REFERENCE, "minipaged.cache.block.FreeQueue"),
    "the reference renamed": (renamed_reference(), "minipaged.cache.block.FreeQueue"),
    "the reference beside a helper": (
        f"{REFERENCE}\n\ndef helper():\n    return _OFF\n",
        "minipaged.cache.block.FreeQueue",
    ),
}


@pytest.mark.parametrize(("source", "original"), COPIES.values(), ids=COPIES)
def test_a_copy_is_named_and_costs_points_only_if_asked_for(course, source, original):
    path = course.submit(source)
    [report] = course.grade(path)
    assert (report.points, report.passed) == (2, True)
    assert report.notes == (f"00.1 FreeQueue is {original}, names aside",)
    [report] = course.grade(path, no_copies=True)
    [result] = report.results
    assert (result.points, result.max_points, result.status) == (0, 2, "copied")
    assert result.reason == f"This is {original}, names aside: write your own."
    assert (result.num_passed, result.num_cases, exit_code([report])) == (0, 2, 1)
    assert report.notes == ()  # the reason says it


def test_what_differs_in_a_step_is_no_copy(course):
    [report] = course.grade(course.submit(OWN), no_copies=True)
    assert (report.points, report.notes) == (2, ())
    assert not copied_from("", course.course.exercises[0], course.folder, "00_tour")
    deep = f"{DISGUISED}\nx = {'+'.join('1' * 20_000)}\n"
    assert copied_from(deep, course.course.exercises[0], course.folder, "00_tour") == ""


def test_a_short_exercise_is_never_called_a_copy():
    exercise = catalog().exercise("00.1")
    solutions = RELEASE.parents[1] / "solutions"
    [report] = grade([solutions / "00_tour.ipynb"], 1, no_copies=True)
    assert (report.points, report.notes) == (1, ())
    source = "def blocks_needed(n, b):\n    f, r = divmod(n, b)\n    return f + 1 if r else f\n"
    assert copied_from(source, exercise, solutions, "00_tour") == ""
    original = (
        "def blocks_needed(num_tokens, size):\n    full, left = divmod(num_tokens, size)\n"
        "    return full + 1 if left else full\n"
    )
    one, other = (shape_of(ast.parse(text)) for text in (source, original))
    assert one == other
    assert one.num_nodes < MIN_NODES / 2


def test_the_command_leaves_copies_without_points_if_asked_to():
    path = RELEASE.parents[1] / "solutions/02_block_pool.ipynb"
    result = CliRunner().invoke(app, ["grade", str(path), "--json", "--no-copies", "--seed", "1"])
    [report] = json.loads(result.stdout)["reports"]
    statuses = {one["exercise_id"]: one["status"] for one in report["results"]}
    assert statuses == {"02.1": "copied", "02.2": "copied", "02.3": "passed"}
    assert report["notes"] == []


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        ("x = 1", "y: int = 1", True),
        ("x = 1", "x = 2", False),
        ("import math\nimport re", "import re\nimport math", True),
        ("import math", "import re", False),
        ("import math as m\nm.pi", "import math as k\nk.pi", True),
        ("def f(a):\n    return len(a)", "def g(b):\n    'Text.'\n    return len(b)", True),
        ("def f(a):\n    return len(a)", "def f(a):\n    return sum(a)", False),
        ("def f(a, b):\n    return a - b", "def f(a, b):\n    return b - a", False),
        ("try: pass\nexcept E as a: a", "try: pass\nexcept E as b: b", True),
        ("class A:\n    def f(s): s.g()", "class A:\n    def f(s): s.h()", False),
        ("class A:\n    def f(s): s._g()", "class A:\n    def f(s): s._h()", False),
        (
            "class A:\n    def _g(s): pass\n    def f(s): s._g()",
            "class A:\n    def f(t): t._h()\n    def _h(s): pass",
            True,
        ),
        ("def f(a):\n    global n\n    n = a", "def f(b):\n    global n\n    n = b", True),
    ],
)
def test_shapes(a, b, equal):
    assert (shape_of(ast.parse(a)) == shape_of(ast.parse(b))) == equal
