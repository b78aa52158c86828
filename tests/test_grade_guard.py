"""What a graded cell may import: modules for data and numbers, and nothing of minipaged."""

from __future__ import annotations

import dataclasses
import re

import pytest
from submissions import RIGHT, ROOT, SmallCourse, graded, submitter

from minipaged.course import guard
from minipaged.course.checks import lesson_00
from minipaged.course.sandbox import Limits


@pytest.fixture
def submit(tmp_path):
    """Writes a submission of lesson 00 and returns its path."""
    return submitter(tmp_path)


def test_modules_for_data_and_numbers_are_imported(submit):
    source = "".join(f"import {name}\n" for name in sorted(guard.PLAIN - {"__future__"}))
    source = f"from __future__ import annotations\n{source}from collections.abc import Iterable\n"
    source += "time.strptime('2026', '%Y')\ndatetime.datetime.strptime('2026', '%Y')\n"
    source += "statistics.NormalDist(0, 1)\n@dataclasses.dataclass\nclass Size:\n    n: int\n"
    assert graded(submit(source + RIGHT))[0].passed


REFUSED = [
    *("import minipaged", "import minipaged.cache.block as b", "from minipaged import LLM"),
    *("__import__('minipaged.cache')", "exec('import minipaged')", "exec('import minipaged', {})"),
    "import random\nrandom._os.sys.modules['importlib'].import_module('minipaged.cache')",
    "import dataclasses\ndataclasses.sys.modules['builtins'].__import__('minipaged')",
]


@pytest.mark.parametrize("line", REFUSED)
def test_minipaged_is_found_by_nobody(submit, line):
    for source in (f"{line}\n{RIGHT}", RIGHT.replace("    return", f"    {line}\n    return", 1)):
        source = (
            source.replace("\nrandom.", "\n    random.") if source.startswith("def") else source
        )
        source = source.replace("\ndata", "\n    data") if source.startswith("def") else source
        _, result = graded(submit(source))
        assert result.points == 0
        assert (
            "Your code raised ImportError: minipaged cannot be imported in a graded cell: what the "
            "task asks for is to be your own work" in result.reason
        )


def test_minipaged_is_not_among_the_loaded_modules(submit):
    source = "import random\nassert not [m for m in random._os.sys.modules if 'minipaged' in m]\n"
    assert graded(submit(source + RIGHT))[0].passed


OTHERS = "os sys subprocess ctypes socket gc inspect pathlib importlib builtins unittest io".split()


@pytest.mark.parametrize("name", OTHERS)
def test_other_modules_are_refused_and_named(submit, name):
    _, result = graded(submit(f"from {name} import *\n{RIGHT}"))
    assert (result.points, result.status) == (0, "cell fails")
    assert f"ImportError: {name} cannot be imported in a graded cell: only" in result.reason
    assert f"in line 1 of the cell: `from {name} import *`" in result.reason


def test_a_refused_import_can_be_caught_like_any(submit):
    source = "try:\n    import numpy\nexcept ImportError:\n    numpy = None\n"
    assert graded(submit(source + RIGHT))[0].passed


OPENS = [
    *("open({!r})", "open({!r}, 'a')", 'exec("open({!r})", {{}})', "open(3, 'wb')"),
    "import json\njson.load(json.codecs.open({!r}))",
    "import random\nrandom._os.fdopen(random._os.open({!r}, 0))",
    "import random\nrandom._os.sys.modules['io'].FileIO({!r})",
]


@pytest.mark.parametrize("line", OPENS)
def test_files_are_not_opened_and_that_is_said(submit, tmp_path, line):
    (tmp_path / "note").write_text("{}", encoding="utf-8")
    _, result = graded(submit(f"{line.format(str(tmp_path / 'note'))}\n{RIGHT}"))
    assert (result.points, result.status) == (0, "cell fails")
    assert "Your code raised PermissionError: files cannot be opened in a graded" in result.reason
    assert "of the cell: `" in result.reason


def test_nobody_reads_the_packaged_solutions(submit):
    solved = str(ROOT / "solutions/00_tour.ipynb")
    source = (
        f"import json\ntry:\n    data = json.load(open({solved!r}))\nexcept OSError:\n    pass\n"
        "else:\n    for cell in data['cells']:\n        if cell['id'] == 'ex-00-1':\n"
        "            exec(''.join(cell['source']))\n"
    )
    assert graded(submit(source))[1].status == "undefined"
    assert graded(submit(source), guarded=False)[0].passed


def test_what_opens_files_for_the_learner_still_does(submit):
    """Imports of modules, warnings, which show a line of a file, and the lines of a fault."""
    source = "import warnings\nwarnings.warn('careful', stacklevel=1)\n"
    late = RIGHT.replace("    return", "    import colorsys, fractions\n    return", 1)
    assert "colorsys cannot be imported" in graded(submit(source + late))[1].reason
    late = RIGHT.replace("    return", "    import fractions, statistics\n    return", 1)
    assert graded(submit(source + late))[0].passed
    late = RIGHT.replace("    return", "    import statistics\n    statistics.mean([])\n    return")
    assert "in line 3 of the cell: `statistics.mean([])`" in graded(submit(late))[1].reason


def test_torch_and_numpy_only_where_the_check_uses_tensors(submit, monkeypatch):
    source = (
        "import numpy as np\nimport torch.nn.functional as f\ndef blocks_needed(n, b):\n"
        "    return int(np.ceil(f.relu(torch.tensor([n, b]).double()).numpy()[0] / b))\n"
    )
    path = submit("import torch\n" + source)
    reason = graded(path)[1].reason
    assert "torch cannot be imported in this cell: the exercise works on plain" in reason
    check = dataclasses.replace(lesson_00.CHECKS["00.1"], tensors=True)
    monkeypatch.setattr(lesson_00, "CHECKS", {"00.1": check})
    report, result = graded(path, seconds=5)
    assert report.passed, result.reason


def test_given_cells_import_what_they_like_and_learners_cells_do_not(tmp_path, monkeypatch):
    exercise = ("up", 1, "def up(n, b):\n    return ceil(n, b)\n")
    given = "import sys\nfrom minipaged.course.checks.lesson_00 import blocks_that_hold as ceil"
    course = SmallCourse(tmp_path, monkeypatch, [exercise], given=given)
    paths = [
        course.submit(name="a.ipynb"),
        course.submit("import minipaged\nup = ceil\n", name="b.ipynb"),
        course.submit("up = ceil\n", name="c.ipynb"),
    ]
    results = [report.results[0] for report in course.grade(*paths)]
    assert [result.status for result in results] == ["passed", "cell fails", "not your own"]


def test_the_guard_is_on_unless_it_is_switched_off():
    assert "os" not in (Limits().importable() or ())
    assert "torch" in (Limits(tensors=True).importable() or ())
    assert Limits(guarded=False).importable() is None


def test_teachers_are_told_what_may_be_imported():
    text = (ROOT / "docs/GRADING.md").read_text(encoding="utf-8")
    listed = " ".join(line for line in text.splitlines() if line.startswith("> "))
    assert set(re.findall(r"`(\w+)`", listed)) == guard.PLAIN
    (with_tensors,) = re.findall(r"and (.*) where an exercise is on tensors", text)
    assert set(re.findall(r"`(\w+)`", with_tensors)) == guard.TENSORS
