"""Exercises that need Triton: said where it is missing, interpreted where there is no GPU."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from minipaged.course import catalog, needs, shipped
from minipaged.course.sandbox import Limits, NoAnswer, observe

KERNEL = "import triton\n\ndef f(): ..."


@pytest.fixture
def no_triton(monkeypatch):
    """As on a system that Triton has no wheel for."""
    monkeypatch.setattr(needs, "_is_there", lambda: False)


def test_what_is_missing_is_said_in_one_line(no_triton):
    assert needs.lacking(None) == ""
    assert "wheels for Linux only" in needs.lacking("triton")
    with pytest.raises(needs.NeedsTriton, match="lessons 11 and 12") as raised:
        needs.require_triton()
    assert raised.value._render_traceback_()[0].startswith("NeedsTriton: Triton is not installed")


def test_a_cell_that_imports_it_is_not_started_without(no_triton):
    with pytest.raises(NoAnswer, match="No GPU is needed") as raised:
        observe([("given-1", KERNEL), ("ex", "x = 1")], "x", [], Limits())
    assert raised.value.status == "needs Triton"


@pytest.mark.parametrize(
    ("source", "needed"),
    [
        (KERNEL, "triton"),
        ("    from triton import language as tl", "triton"),
        ("import triton.language as tl", "triton"),
        ("import torch, triton", "triton"),
        ("x = 1; import triton", "triton"),
        ("import numpy as np, triton.language as tl", "triton"),
        ("import torch  # not triton", None),
        ("# import triton", None),
        ("import tritonn", None),
    ],
)
def test_what_a_cell_needs_is_read_off_its_imports(source, needed):
    assert needs.needed_by(["x = 1", source]) == needed


def test_mine_does_without_what_is_missing(no_triton, tmp_path, monkeypatch):
    """`minipaged mine` takes an earlier part; a notebook that asks for the kernel is told why."""
    from minipaged.course.learner import mine_run, workspace
    from minipaged.course.learner.desk import Desk
    from minipaged.course.mine import mine

    course = shipped.course()
    workspace.init(tmp_path / "ws", course)
    parts = mine_run.choose(Desk(workspace.find(tmp_path / "ws"), course), ())
    assert [p.exercise.needs for p in parts if p.exercise.component == "attention"] == [None]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(needs.NeedsTriton, match="wheels for Linux"):
        mine("11.3")


def test_a_lesson_needs_what_its_exercises_do():
    course = catalog.catalog()
    assert course.needs_of("04") is None
    for exercise in course.exercises:
        assert exercise.needs in (None, course.needs_of(exercise.lesson_id))


def run(code: str, **environment: str) -> str:
    """What Python prints, or the last line of its complaint."""
    env = {key: value for key, value in os.environ.items() if key != needs.INTERPRET}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env | environment, capture_output=True, text=True
    )
    return (done.stdout or done.stderr).strip().splitlines()[-1]


def test_cells_with_kernels_are_interpreted_on_whatever_machine():
    code = (
        "import os, sys\n"
        "from minipaged.course import needs\n"
        "needs.interpret(['{source}'])\n"
        "print(os.environ.get('TRITON_INTERPRET'), 'torch' in sys.modules)\n"
    )
    assert run(code.format(source="import triton")) == "1 False"
    assert run(code.format(source="x = 1")) == "None False"
    assert run(code.format(source="import triton"), TRITON_INTERPRET="0") == "0 False"


def test_the_first_cell_says_what_is_wrong_with_the_kernel():
    pytest.importorskip("triton", reason="Triton has wheels for Linux only")
    call = "from minipaged.course.needs import require_triton\nrequire_triton()"
    late = "import os, triton.language\nos.environ['TRITON_INTERPRET'] = '1'\n" + call
    assert "belongs above" in run(call)
    assert "restart the kernel" in run(late)
    assert run(call + "\nprint('fine')", TRITON_INTERPRET="1") == "fine"
