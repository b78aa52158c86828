"""Pictures that answer to sliders and buttons, and stay pictures where there are none.

What a notebook stores is the picture of the start; in a running notebook with ipywidgets the live
form stands in its place. No torch; ipywidgets is imported only when something live is shown.
"""

from __future__ import annotations

import html
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from minipaged.trace import Trace
from minipaged.viz.figure_step import show_step
from minipaged.viz.picture import Picture

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
MAX_CHOICES = 1000

Choices = Sequence[Any] | tuple[float, float, float]


class Interactive:
    """A picture, and the widgets that redraw it.

    draw(**values): a Picture or a text. start: the values of the picture that is stored.
    make_controls(redraw): the widgets to show above it; they call redraw(**values).
    """

    def __init__(
        self,
        draw: Callable[..., Picture | str],
        start: dict[str, Any],
        make_controls: Callable[[Callable[..., None]], list[Any]],
    ) -> None:
        self._draw = draw
        self._make_controls = make_controls
        self._box: Any = None
        self.start = _as_picture(draw(**start))

    @property
    def widget(self) -> Any:
        """The live form, made when first asked for: controls, a box for the text form, and an
        ipywidgets.HTML. ImportError, with what to install, without ipywidgets."""
        if self._box is None:
            widgets = _ipywidgets()
            shown = widgets.HTML(_as_html(self.start))
            as_text = widgets.Checkbox(
                description="as text", indent=False, layout=widgets.Layout(width="auto")
            )
            now = [self.start]

            def redraw(**values: Any) -> None:
                now[0] = _called(self._draw, values)
                shown.value = _as_html(now[0], as_text.value)

            as_text.observe(
                lambda _: setattr(shown, "value", _as_html(now[0], as_text.value)), names="value"
            )
            row = [*self._make_controls(redraw), as_text]
            controls = widgets.HBox(row, layout=widgets.Layout(flex_flow="row wrap"))
            self._box = widgets.VBox([controls, shown])
        return self._box

    def __repr__(self) -> str:
        return self.start.text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """The start picture; the live form beside it where a kernel can move it."""
        bundle = {"text/plain": self.start.text}
        if self.start.svg:
            bundle["image/svg+xml"] = self.start.svg
        if not _kernel_runs():
            return bundle
        try:
            live = self.widget._repr_mimebundle_()
        except ImportError:
            return bundle
        return {**bundle, WIDGET_VIEW: live[WIDGET_VIEW]}


def step_through(trace: Trace, step: int = 0) -> Interactive:
    """A slider and two buttons over the steps of a trace; `step` is the one stored.

    ValueError if there is no such step.
    """

    def controls(redraw: Callable[..., None]) -> list[Any]:
        widgets = _ipywidgets()
        last = len(trace.steps) - 1
        slider = widgets.IntSlider(value=step, min=0, max=last, description="step")
        back, on = (
            widgets.Button(description=words, layout=widgets.Layout(width="6em"))
            for words in ("back", "next")
        )
        back.on_click(lambda _: setattr(slider, "value", max(slider.value - 1, 0)))
        on.on_click(lambda _: setattr(slider, "value", min(slider.value + 1, last)))
        slider.observe(lambda change: redraw(step=change["new"]), names="value")
        return [slider, back, on]

    return Interactive(lambda step: show_step(trace, step), {"step": step}, controls)


def explore(
    function: Callable[..., Picture | str],
    /,
    start: dict[str, Any] | None = None,
    **choices: Choices,
) -> Interactive:
    """One slider per choice; at each move function(**values) is called again and shown.

    choices: by name a list of values, or (low, high, step), both ends included. start: the values
    to begin with, by name; those left out begin with their first. The call for the start is made
    at once, and what it raises is raised.

    ValueError if a choice is empty or a start value is none of its values.
    """
    values = {name: _values(name, choice) for name, choice in choices.items()}
    if not values:
        raise ValueError("explore needs something to choose: explore(function, size=[1, 4, 16])")
    begin = {name: known[0] for name, known in values.items()} | (start or {})
    for name, value in begin.items():
        if value not in values.get(name, ()):
            known = values.get(name)
            limit = f"choose one of {known}" if known else f"the choices are {', '.join(values)}"
            raise ValueError(f"start has {name}={value!r}: {limit}")

    def controls(redraw: Callable[..., None]) -> list[Any]:
        widgets = _ipywidgets()
        sliders = {
            name: widgets.SelectionSlider(
                options=[(_label(v), v) for v in known],
                value=begin[name],
                description=name,
                style={"description_width": "initial"},
            )
            for name, known in values.items()
        }
        for slider in sliders.values():
            slider.observe(
                lambda _: redraw(**{n: s.value for n, s in sliders.items()}), names="value"
            )
        return list(sliders.values())

    return Interactive(function, begin, controls)


def _values(name: str, choice: Choices) -> list[Any]:
    """The values of a choice, at most 1,000."""
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in choice)
    if isinstance(choice, tuple) and len(choice) == 3 and numbers:
        low, high, step = choice
        if not step > 0 or not low <= high:
            raise ValueError(
                f"{name} is {choice!r}: give (low, high, step) with low <= high and step > 0, "
                f"or a list of values"
            )
        count = int((high - low) / step + 1e-9) + 1
        values = [_exact(low + i * step) for i in range(min(count, MAX_CHOICES + 1))]
    else:
        values = list(choice)
    if not 1 <= len(values) <= MAX_CHOICES:
        found = "none" if not values else f"more than {MAX_CHOICES}"
        raise ValueError(f"{name} has {found} to choose from: give 1 to {MAX_CHOICES} values")
    return values


def _exact(number: float) -> float:
    """0.3 for 0.30000000000000004; integers stay integers."""
    return round(number, 12) if isinstance(number, float) else number


def _label(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _as_picture(result: object) -> Picture:
    if isinstance(result, Picture):
        return result
    if isinstance(result, str):
        return Picture("", result)
    raise TypeError(
        f"the function returned {type(result).__name__}: let it return a Picture or a text"
    )


def _called(draw: Callable[..., Picture | str], values: dict[str, Any]) -> Picture:
    """What the function draws for these values; an error of it is told, not lost."""
    try:
        return _as_picture(draw(**values))
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        asked = ", ".join(f"{name}={value!r}" for name, value in values.items())
        told = "".join(traceback.format_exception_only(error)).strip()
        return Picture("", f"{told}\n\nfor {asked}, in line {place.lineno} of {place.name}")


def _as_html(picture: Picture, as_text: bool = False) -> str:
    """The drawing; the text where that is wished, or where there is nothing else."""
    if picture.svg and not as_text:
        return picture.svg
    # line-height: ipywidgets sets text wide apart, and a grid would fall to pieces
    return f'<pre style="line-height: 1.3">{html.escape(picture.text)}</pre>'


def _ipywidgets() -> Any:
    try:
        import ipywidgets
    except ImportError:
        raise ImportError(
            "sliders need ipywidgets, which is not installed: pip install 'minipaged[pictures]'"
        ) from None
    return ipywidgets


def _kernel_runs() -> bool:
    """Whether this is a notebook's kernel: only there does a slider reach us."""
    ipython = sys.modules.get("IPython")  # a kernel has loaded it; nobody else need
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None
