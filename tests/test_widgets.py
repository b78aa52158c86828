"""Sliders over pictures: they move, they tell errors, and without a kernel a picture stays."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path

import nbformat
import pytest

from minipaged.course.dev.execute import _drop_widgets, execute
from minipaged.simulate import simulate
from minipaged.viz import widgets
from minipaged.viz.figures import Picture, show_pool, show_step
from minipaged.viz.widgets import WIDGET_VIEW, explore, step_through

ipywidgets = pytest.importorskip("ipywidgets")


@pytest.fixture(scope="module")
def trace():
    return simulate([(9, 5), (30, 8)], block_size=4, num_blocks=16)


def parts(shown):
    """The controls of a live form, without the box for the text form, and its HTML."""
    row, picture = shown.widget.children
    assert isinstance(picture, ipywidgets.HTML)
    return list(row.children[:-1]), row.children[-1], picture


def test_the_slider_moves_through_the_steps(trace):
    shown = step_through(trace, 2)
    (slider, back, on), _, picture = parts(shown)
    assert (slider.min, slider.max, slider.value) == (0, len(trace.steps) - 1, 2)
    assert picture.value == show_step(trace, 2).svg
    for step in (5, 0, len(trace.steps) - 1):
        slider.value = step
        assert picture.value == show_step(trace, step).svg
    on.click()
    assert slider.value == len(trace.steps) - 1  # there is no further step
    back.click()
    assert slider.value == len(trace.steps) - 2
    assert picture.value == show_step(trace, len(trace.steps) - 2).svg
    slider.value = 0
    back.click()
    assert slider.value == 0
    on.click()
    assert slider.value == 1 and picture.value == show_step(trace, 1).svg


def test_the_text_form_can_be_asked_for(trace):
    (slider, _, _), as_text, picture = parts(step_through(trace))
    as_text.value = True
    assert "requests running: 2" in picture.value and "<svg" not in picture.value
    slider.value = 3
    assert "step 3 " in picture.value and "<svg" not in picture.value
    as_text.value = False
    assert picture.value == show_step(trace, 3).svg


def test_a_step_that_is_not_there_is_named(trace):
    with pytest.raises(ValueError, match="step is 99, but the trace has"):
        step_through(trace, 99)


def draw(size, name):
    return show_pool(size, {name: [0]})


def test_explore_calls_the_function_again():
    calls = []

    def called(size, name):
        calls.append((size, name))
        return draw(size, name)

    shown = explore(called, size=(4, 12, 4), name=["A", "B"], start={"size": 8})
    assert calls == [(8, "A")] and shown.start == draw(8, "A")
    (size, name), _, picture = parts(shown)
    assert [value for _, value in size.options] == [4, 8, 12] and size.value == 8
    assert picture.value == draw(8, "A").svg
    size.value = 12
    assert picture.value == draw(12, "A").svg
    name.value = "B"
    assert picture.value == draw(12, "B").svg
    assert calls[1:] == [(12, "A"), (12, "B")]


def test_explore_shows_a_text_as_text():
    shown = explore(lambda n: "<" * n, n=[1, 2])
    (n,), _, picture = parts(shown)
    n.value = 2
    assert picture.value.endswith(">&lt;&lt;</pre>")
    assert shown._repr_mimebundle_() == {"text/plain": "<"}


def test_an_error_of_the_function_is_shown_and_the_slider_goes_on():
    (n,), _, picture = parts(explore(lambda n: str(1 // n), n=[1, 0, 2]))
    n.value = 0
    assert "ZeroDivisionError" in picture.value and "for n=0, in line" in picture.value
    n.value = 2
    assert picture.value.endswith(">0</pre>")


def test_what_is_neither_picture_nor_text_is_named():
    (n,), _, picture = parts(explore(lambda n: "x" if n else None, n=[1, 0]))
    n.value = 0
    assert "TypeError: the function returned NoneType" in picture.value
    with pytest.raises(TypeError, match="returned int: let it return a Picture or a text"):
        explore(lambda n: n, n=[1])


def test_an_error_at_the_start_is_raised():
    with pytest.raises(ZeroDivisionError):
        explore(lambda n: 1 // n, n=[0, 1])


@pytest.mark.parametrize(
    ("choice", "values"),
    [
        ((1, 7, 2), [1, 3, 5, 7]),
        ((1, 6, 2), [1, 3, 5]),
        ((0.0, 0.5, 0.1), [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]),
        ((3, 3, 1), [3]),
        ([1, 7, 2], [1, 7, 2]),
        ((4, 8), [4, 8]),
        (("a", "b", "c"), ["a", "b", "c"]),
        (range(3), [0, 1, 2]),
        ([True, False], [True, False]),
    ],
)
def test_choices_are_lists_or_ranges(choice, values):
    (slider,), _, _ = parts(explore(str, object=choice))
    assert [value for _, value in slider.options] == values


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "explore needs something to choose"),
        ({"n": []}, "n has none to choose from"),
        ({"n": (0, 5000, 1)}, "n has more than 1000 to choose from"),
        ({"n": (4, 1, 1)}, r"n is \(4, 1, 1\): give \(low, high, step\)"),
        ({"n": (1, 4, 0)}, r"n is \(1, 4, 0\)"),
        ({"n": [1, 2], "start": {"n": 3}}, r"start has n=3: choose one of \[1, 2\]"),
        ({"n": [1, 2], "start": {"m": 1}}, "start has m=1: the choices are n"),
    ],
)
def test_choices_that_cannot_be_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        explore(str, **options)


def test_without_a_kernel_the_picture_stays(trace):
    shown, picture = step_through(trace, 3), show_step(trace, 3)
    assert shown._repr_mimebundle_() == picture._repr_mimebundle_()
    assert repr(shown) == picture.text


def test_with_a_kernel_the_live_form_comes_first(trace, monkeypatch):
    monkeypatch.setattr(widgets, "_kernel_runs", lambda: True)
    shown = step_through(trace, 3)
    bundle = shown._repr_mimebundle_()
    assert bundle.pop(WIDGET_VIEW)["model_id"] == shown.widget.model_id
    assert bundle == show_step(trace, 3)._repr_mimebundle_()


def test_without_ipywidgets_the_picture_stays(trace, monkeypatch):
    importer = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name == "ipywidgets":
            raise ImportError(name)
        return importer(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    monkeypatch.setattr(widgets, "_kernel_runs", lambda: True)
    shown = step_through(trace, 3)
    assert shown._repr_mimebundle_() == show_step(trace, 3)._repr_mimebundle_()
    with pytest.raises(ImportError, match=r"pip install 'minipaged\[pictures\]'"):
        shown.widget  # noqa: B018


CELLS = [
    "from minipaged.simulate import simulate\n"
    "from minipaged.viz.widgets import WIDGET_VIEW, explore, step_through\n"
    "trace = simulate([(9, 5)], block_size=4)\n"
    "shown = step_through(trace, 2)\n"
    "assert WIDGET_VIEW in shown._repr_mimebundle_()",
    "shown",
    "explore(lambda n: 'x' * n, n=[3, 1])",
]


def test_a_stored_notebook_holds_pictures_and_no_widgets():
    pytest.importorskip("nbclient")
    cells = [nbformat.v4.new_code_cell(cell, id=f"c{i}") for i, cell in enumerate(CELLS)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    execute(notebook, Path(widgets.__file__).parents[2])
    stored = [output.data for cell in notebook.cells for output in cell.outputs]
    picture = show_step(simulate([(9, 5)], block_size=4), 2)
    assert stored == [picture._repr_mimebundle_(), {"text/plain": "xxx"}]
    assert "widgets" not in notebook.metadata


def test_widget_state_is_dropped():
    data = {WIDGET_VIEW: {"model_id": "1"}, "text/plain": "HTML(value='')"}
    output = nbformat.v4.new_output("display_data", data=data)
    cell = nbformat.v4.new_code_cell("…", outputs=[output])
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"widgets": {"state": {}}})
    _drop_widgets(notebook)
    assert notebook.cells[0].outputs[0].data == {"text/plain": "HTML(value='')"}
    assert "widgets" not in notebook.metadata


def test_a_picture_of_ones_own_will_do():
    assert explore(lambda n: Picture("<svg/>", str(n)), n=[7]).start.text == "7"
    assert "IPython" not in sys.modules or not widgets._kernel_runs()
