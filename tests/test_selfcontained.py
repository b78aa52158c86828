"""What a cell takes from other cells, or may not have at grading, is told before it is graded."""

from __future__ import annotations

import json
import linecache
import subprocess
import sys
from pathlib import Path

import pytest
from workspaces import call_fixture, course_fixture, fill_in, here_fixture  # noqa: F401

from minipaged.course import shipped
from minipaged.course.catalog import catalog
from minipaged.course.check import _notes, check
from minipaged.course.checks.base import check_of
from minipaged.course.selfcontained import cell_of, defined, notes

ROOT = Path(__file__).parents[1]
ELSEWHERE = {"math", "helper", "Size", "number"}


@pytest.mark.parametrize("exercise", catalog().exercises, ids=lambda exercise: exercise.id)
def test_the_solutions_and_the_stubs_need_nothing_from_elsewhere(exercise):
    course = shipped.course()
    given = [source for _, source in course.given(exercise)]
    tensors = check_of(exercise).tensors
    everything = [defined(cell.source) for cell in course.release(exercise).cells]
    elsewhere = set().union(ELSEWHERE, dir(sys), *everything)
    for source in (course.solution(exercise), course.stub(exercise)):
        assert notes(source, tensors=tensors, given=given, elsewhere=elsewhere) == []


MISSED = {
    "a module in a function": ("def f(n):\n    return math.ceil(n)\n", "math"),
    "a helper": ("def f(n):\n    return [helper(k) for k in range(n)]\n", "helper"),
    "at the top": ("x = number + 1\n", "number"),
    "an annotation": ("def f(n: Size) -> int:\n    return n\n", "Size"),
    "a default": ("def f(n=number):\n    return n\n", "number"),
    "a base": ("class A(Size):\n    def f(self):\n        return 1\n", "Size"),
    "in a class": ("class A:\n    size = number\n", "number"),
    "a class's own name in a method": (
        "class A:\n    number = 1\n    def f(self):\n        return number\n",
        "number",
    ),
    "a decorator": ("@helper\ndef f(n):\n    return n\n", "helper"),
    "a nested function": (
        "def f(n):\n    def g():\n        return lambda: math.pi\n    return g\n",
        "math",
    ),
}


@pytest.mark.parametrize("name", MISSED)
def test_a_name_of_another_cell_is_named(name):
    source, missing = MISSED[name]
    said = notes(source, tensors=False, elsewhere=ELSEWHERE)
    assert said == [
        f"`{missing}` is defined in another cell: only this cell is graded, move it in."
    ]
    assert notes(source, tensors=False) == []  # nobody defines it: the error itself says so
    given = "import math\nfrom x import Size as y, number, helper\nclass Size: pass\n"
    assert notes(source, tensors=False, given=[given], elsewhere=ELSEWHERE) == []


FINE = [
    "import math\ndef f(n):\n    return math.ceil(n)\n",
    "def f(n):\n    import math\n    return math.ceil(n)\n",
    "def f(n):\n    return helper(n)\ndef helper(n):\n    return n\n",
    "from math import *\ndef f(number):\n    return ceil(number)\nx = helper\n",
    "def f(math, *helper, **number):\n    return math, helper, number\n",
    "number: int = 3\nfor helper in range(3): pass\ndef f(): return number + helper\n",
    "def f():\n    global number\n    number = 1\ndef g():\n    return number\n",
    "from __future__ import annotations\ndef f(n: Size) -> Size:\n    return n\n",
    "class A:\n    number = 1\n    double = number * 2\n",
    "def f(n):\n    try:\n        return n\n    except ValueError as math:\n        return math\n",
    "def f(n):\n    return [math for math in n if (helper := math)]\n",
    "try:\n    import numpy\nexcept ImportError:\n    numpy = None\n",
    "def f(n):\n    return __name__, __doc__, print, n.math\n",
    "%matplotlib inline\nmath.ceil(2)\n",
    "def f(:\n",
    "",
]


@pytest.mark.parametrize("source", FINE)
def test_what_stands_on_its_own_has_no_notes(source):
    assert notes(source, tensors=False, elsewhere=ELSEWHERE) == []


def test_what_is_refused_at_grading_is_said():
    [os, numpy] = notes(
        "def f():\n    import os.path\n    from os import sep\nimport numpy", tensors=False
    )
    assert os.startswith("At grading, os cannot be imported in a graded cell: only modules")
    assert "numpy cannot be imported in this cell: the exercise works on plain" in numpy
    assert notes("import numpy as np, torch", tensors=True) == []
    [opened] = notes("def f():\n    return open('x').read()", tensors=False)
    assert "`open`: files cannot be opened in a graded cell" in opened
    assert notes("def open(n): return n\nx = open(3)", tensors=False) == []
    [own] = notes("def f(n):\n    display(n)\n    return n", tensors=False)
    assert own == "`display` is the notebook's own and is not there at grading."


def in_a_cell(source: str, name: str, namespace: dict | None = None):
    """What a notebook's kernel does with a cell."""
    filename = f"/nowhere/ipykernel_1/{abs(hash(source))}.py"
    lines = source.splitlines(keepends=True)
    linecache.cache[filename] = (len(source), None, lines, filename)
    namespace = {} if namespace is None else namespace
    exec(compile(source, filename, "exec"), namespace)
    return namespace[name]


@pytest.mark.parametrize(
    "source",
    [
        "x = 1\ndef f(n):\n    return n\n",
        "class f:\n    a = 1\n    def g(self): pass\n",
        "class f:\n    @property\n    def g(self): pass\n",
        "class f:\n    @staticmethod\n    def g(self): pass\n",
        "import functools\n@functools.cache\ndef f(n):\n    return n\n",
        "import dataclasses\n@dataclasses.dataclass\nclass f:\n    n: int\n    def g(self): pass\n",
    ],
)
def test_the_whole_cell_is_found(source):
    assert cell_of(in_a_cell(source, "f")) == source


def test_what_was_not_defined_in_a_cell_has_none():
    for subject in (in_a_cell, Path, len, int, subprocess.run, 3):
        assert cell_of(subject) == ""


def test_the_check_in_a_notebook_notes_it_and_passes(capsys, monkeypatch):
    source = "def blocks_needed(n, b):\n    return math.ceil(n / b)\n"
    namespace: dict = {}
    exec("import math", namespace)
    check("00.1", in_a_cell(source, "blocks_needed", namespace))
    out = " ".join(capsys.readouterr().out.split())
    assert "9 of 9 passed" in out and "All done here" in out
    assert "note `math` is defined in another cell: only this cell is graded, move it in." in out
    check("00.1", in_a_cell("import math\n" + source, "blocks_needed", namespace))
    assert "note" not in capsys.readouterr().out


def test_the_check_in_a_notebook_knows_the_given_cells(here, course, capsys):
    source = "def BlockPool(n, b):\n    assert HALVES\n    return -(-n // b)\n"
    subject = in_a_cell(source, "BlockPool", {"HALVES": {"x": "//"}})
    exercise = course.catalog.exercise("01.2")
    assert _notes(exercise, check_of(exercise), subject) == []
    [said] = _notes(course.catalog.exercise("01.1"), check_of(exercise), subject)
    assert said.startswith("`HALVES` is defined in another cell")


def test_a_kernel_tells_its_cells(tmp_path):
    """In a real kernel: the cells are those that it keeps, and `display` is not Python's own."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    cells = [
        "import math",
        "def blocks_needed(n, b):\n    display()\n    return math.ceil(n / b)",
        'from minipaged.course.check import check\ncheck("00.1", blocks_needed)',
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    nbclient.NotebookClient(notebook, resources={"metadata": {"path": str(ROOT)}}).execute()
    out = " ".join("".join(o.get("text", "") for o in notebook.cells[2].outputs).split())
    assert "9 of 9 passed" in out
    assert "`display` is the notebook's own" in out
    assert "`math` is defined in another cell" in out


# in the terminal


def define_elsewhere(here, source: str) -> None:
    path = here / "exercises/00_tour.ipynb"
    data = json.loads(path.read_text(encoding="utf-8"))
    cell = {"cell_type": "code", "id": "own", "metadata": {}, "source": source}
    data["cells"].insert(0, {**cell, "outputs": [], "execution_count": None})
    path.write_text(json.dumps(data), encoding="utf-8")


@pytest.mark.parametrize(
    "source",
    [
        "def blocks_needed(n, b):\n    return math.ceil(n / b)\n",
        "up = math.ceil\ndef blocks_needed(n, b):\n    return up(n / b)\n",
    ],
)
def test_the_check_in_the_terminal_says_where_the_name_is(here, call, source):
    fill_in(here, "00.1", source)
    code, out, _ = call("check")
    assert code == 1 and "name 'math' is not defined" in out
    assert "it must hold the imports and helpers that it uses" in " ".join(out.split())
    define_elsewhere(here, "import math\n%time\n")
    code, out, _ = call("check")
    said = " ".join(out.split())
    assert code == 1
    assert "`math` is defined in another cell: only this cell is graded, move it in." in said
