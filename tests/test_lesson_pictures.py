"""Every picture of every lesson is drawn, and every slider moved to all of its values."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from minipaged.course import needs
from minipaged.course.catalog import catalog
from minipaged.viz.picture import Picture
from minipaged.viz.widgets import Interactive

ROOT = Path(__file__).parents[1]
ALONE = os.environ.get("LESSON_ALONE")
IN_TRITON = [lesson.stem for lesson in catalog().lessons if catalog().needs_of(lesson.id)]
LESSONS = [lesson.stem for lesson in catalog().lessons if lesson.stem not in IN_TRITON]
SVG = "image/svg+xml"


def cells(stem: str) -> list[dict]:
    """The code cells of a stored lesson."""
    notebook = json.loads((ROOT / f"lessons/{stem}.ipynb").read_text(encoding="utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def results(stem: str):
    """The value of the last expression of each cell, by cell id, as a notebook would show it."""
    namespace: dict = {"__name__": "__main__"}
    for cell in cells(stem):
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(tree, stem, "exec"), namespace)
            if last is not None:
                yield cell["id"], eval(compile(ast.Expression(last.value), stem, "eval"), namespace)


@pytest.fixture(scope="module", params=[ALONE] if ALONE else LESSONS)
def lesson(request):
    """A lesson's name, and what its cells show."""
    return request.param, dict(results(request.param))


def require_drawn(picture: Picture) -> None:
    root = ElementTree.fromstring(picture.svg)
    assert root.tag.endswith("svg")
    assert len(list(root.iter())) > 3
    assert picture.text.strip()


def test_every_picture_is_drawn_as_it_is_stored(lesson):
    stem, shown = lesson
    pictures = {i: value for i, value in shown.items() if isinstance(value, Picture | Interactive)}
    stored = {
        cell["id"]: output["data"]
        for cell in cells(stem)
        for output in cell["outputs"]
        if SVG in output.get("data", {})
    }
    assert set(pictures) == set(stored)
    for cell_id, value in pictures.items():
        picture = value.start if isinstance(value, Interactive) else value
        require_drawn(picture)
        # the text form stands beside every stored picture
        assert "".join(stored[cell_id]["text/plain"]) == picture.text
        assert "".join(stored[cell_id][SVG]).strip() == picture.svg.strip()


def moves(widget):
    """Move each slider of a live picture to all of its values (at most 25), one after another."""
    controls, shown = widget.children
    for control in controls.children:
        if hasattr(control, "options"):
            values = [value for _, value in control.options]
        elif hasattr(control, "max"):
            values = list(range(control.min, control.max + 1))
        else:
            continue
        for value in values[:: -(-len(values) // 25)]:
            control.value = value
            yield shown.value


def test_every_slider_can_be_moved_to_the_end(lesson):
    _, shown = lesson
    live = [value for value in shown.values() if isinstance(value, Interactive)]
    assert live, "a lesson has at least one picture that moves"
    for value in live:
        seen = list(moves(value.widget))
        assert len(set(seen)) > 1
        for html in seen:
            assert "<svg" in html and "Error" not in html


@pytest.mark.skipif(ALONE is not None, reason="this is the process of its own")
@pytest.mark.parametrize("stem", IN_TRITON)
def test_lessons_in_triton_pass_too_in_a_process_of_their_own(stem):
    """Their first cell decides for the whole process whether Triton interprets."""
    if why := needs.lacking("triton"):
        pytest.skip(why)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", __file__],
        env={**os.environ, "LESSON_ALONE": stem},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
