"""Bars, lines and histograms: drawn by matplotlib, stored as SVG with a table beside it. No torch.

Only matplotlib's figure objects are used: no pyplot, no current figure, no change of backend. The
same values give the same bytes with the same release of matplotlib.
"""

from __future__ import annotations

import html
import io
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from minipaged.viz.palette import COLOURS, DARK
from minipaged.viz.picture import Picture
from minipaged.viz.words import counted

MAX_ROWS = 12
MAX_LABELS = 80  # characters that stand below an axis without touching
WIDTH, HEIGHT = 6.8, 3.2  # inches of 96 pixels
_HATCHES = ("", "///", "\\\\\\", "xx", "--", "||", "++", "//")  # no dots: each costs 1 kB of SVG
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_STYLES = ("-", "--", "-.", ":")
_ORDER = (4, 0, 2, 5, 1, 6, 3, 7)  # the darker colours first: thin lines on white
_DIGITS = re.compile(r"(?<![\w.])-?\d+\.\d{3,}(?![\w.])")
_OWN = tuple(  # the families of settings that shape a plot
    "axes. errorbar. figure. font. grid. hatch. legend. lines. markers. mathtext. patch. path. "
    "savefig. svg. text. xaxis. xtick. yaxis. ytick.".split()
)


def bars(
    labels: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    title: str = "",
    ylabel: str = "",
    stacked: bool = True,
) -> Picture:
    """A bar per label; several series stand on each other, or beside if not stacked.

    ValueError unless each series has one value a label.
    """
    names = [str(label) for label in labels]
    _require_lengths("labels", names, series)

    def draw(axes: Any) -> None:
        base = [0.0] * len(names)
        width = 0.7 if stacked else 0.8 / len(series)
        for number, (name, values) in enumerate(series.items()):
            shift = 0.0 if stacked else (number - (len(series) - 1) / 2) * width
            axes.bar(
                [place + shift for place in range(len(names))],
                list(values),
                width,
                bottom=base if stacked else None,
                label=name,
                color=_colour(number),
                hatch=_HATCHES[number % len(_HATCHES)],
                edgecolor=DARK,
                linewidth=0.6,
            )
            base = [low + value for low, value in zip(base, values, strict=True)]
        axes.set_xticks(range(len(names)), names)
        if sum(len(name) + 2 for name in names) > MAX_LABELS:
            axes.tick_params(axis="x", labelrotation=30)
        axes.grid(axis="x", visible=False)
        _legend(axes, len(series))

    rows = [[name, *(values[i] for values in series.values())] for i, name in enumerate(names)]
    return _picture(draw, title, "", ylabel, ["", *series], rows)


def lines(
    x: Sequence[float],
    series: Mapping[str, Sequence[float]],
    *,
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    log_x: bool = False,
    log_y: bool = False,
    marks: Mapping[str, float] | None = None,
) -> Picture:
    """One line a series over the same x. log_x, log_y: powers of two at even distances.

    marks: places on the x axis by what to write at them; each is a dotted upright line.
    The text form tells at most 12 points, and the marks. ValueError unless each series has one
    value an x.
    """
    places, marks = list(x), dict(marks or {})
    _require_lengths("x", places, series)
    values = [value for one in series.values() for value in one]
    for name, is_log, numbers in (("log_x", log_x, places), ("log_y", log_y, values)):
        if is_log and min(numbers) <= 0:
            raise ValueError(f"{name[-1]} holds {min(numbers)!r}, but {name} needs values above 0")

    def draw(axes: Any) -> None:
        for number, (name, values) in enumerate(series.items()):
            axes.plot(
                places,
                list(values),
                label=name,
                color=_colour(number),
                linestyle=_STYLES[number % len(_STYLES)],
                marker=_MARKERS[number % len(_MARKERS)],
                markersize=5,
                markevery=max(len(places) // 16, 1),
            )
        if log_x:
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        elif all(float(place).is_integer() for place in places):
            axes.xaxis.get_major_locator().set_params(integer=True)
        if log_y:
            axes.set_yscale("log", base=2)
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        _mark(axes, marks)
        _legend(axes, len(series))

    rows = [[places[i], *(v[i] for v in series.values())] for i in _some(len(places))]
    picture = _picture(draw, title, xlabel, ylabel, [xlabel or "x", *series], rows)
    notes = [f"{len(rows)} of {len(places):,} points"] if len(rows) < len(places) else []
    notes += [f"{name} at {_number(place)}" for name, place in marks.items()]
    return replace(picture, text="\n".join([picture.text, *notes]))


def _mark(axes: Any, marks: Mapping[str, float]) -> None:
    """Upright lines with their names beside them, at the bottom."""
    for name, place in marks.items():
        axes.axvline(place, color=DARK, linestyle=":", linewidth=1)
        where = axes.get_xaxis_transform()
        axes.text(place, 0.02, f" {name}", transform=where, rotation=90, va="bottom", ha="right")


def _some(count: int) -> list[int]:
    """At most 12 of `count` rows, evenly spaced, the first and the last among them."""
    if count <= MAX_ROWS:
        return list(range(count))
    return [round(i * (count - 1) / (MAX_ROWS - 1)) for i in range(MAX_ROWS)]


def histogram(
    values: Sequence[float],
    bins: int | Sequence[float] = 10,
    *,
    title: str = "",
    xlabel: str = "",
) -> Picture:
    """How many values lie in each bin. bins: how many of equal width, or their edges, rising.

    A bin holds its left edge; the last one also its right. Values outside the edges are counted in
    words. ValueError if there are no values.
    """
    edges = _edges(values, bins)
    counts = [0] * (len(edges) - 1)
    for value in values:
        if edges[0] <= value <= edges[-1]:
            counts[min(bisect_right(edges, value), len(counts)) - 1] += 1
    left_out = len(values) - sum(counts)
    note = f"{counted(left_out, 'value')} outside these bins" if left_out else ""

    def draw(axes: Any) -> None:
        widths = [right - left for left, right in pairwise(edges)]
        axes.bar(edges[:-1], counts, widths, align="edge", color=_colour(4), edgecolor=DARK)
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.grid(axis="x", visible=False)

    names = [f"{_number(left)} to {_number(right)}" for left, right in pairwise(edges)]
    rows = [[name, count] for name, count in zip(names, counts, strict=True)]
    below = ", ".join(filter(None, (xlabel, note)))
    picture = _picture(draw, title, below, "count", [xlabel or "value", "count"], rows)
    return replace(picture, text=f"{picture.text}\n{note}") if note else picture


def _edges(values: Sequence[float], bins: int | Sequence[float]) -> list[float]:
    if not len(values):
        raise ValueError("values is empty: a histogram needs at least one")
    if isinstance(bins, int):
        if bins < 1:
            raise ValueError(f"bins is {bins}: give at least 1, or the edges")
        low, high = min(values), max(values)
        if low == high:
            low, high = low - 0.5, high + 0.5
        return [low + (high - low) * i / bins for i in range(bins)] + [high]
    edges = list(bins)
    if len(edges) < 2 or any(a >= b for a, b in pairwise(edges)):
        raise ValueError(f"bins is {bins!r}: give at least two edges, each above the one before")
    return edges


def _colour(number: int) -> str:
    return COLOURS[_ORDER[number % len(_ORDER)]]


def _legend(axes: Any, count: int) -> None:
    if count > 1:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0, frameon=False)


def _require_lengths(name: str, places: Sequence[Any], series: Mapping[str, Sequence[Any]]) -> None:
    if not places or not series:
        raise ValueError(f"{name if not places else 'series'} is empty: there is nothing to draw")
    for label, values in series.items():
        if len(values) != len(places):
            raise ValueError(
                f"series {label!r} has {len(values)} values, but {name} has {len(places)}: "
                f"give one for each"
            )


def _picture(
    draw: Any, title: str, xlabel: str, ylabel: str, header: list[str], rows: list[list[Any]]
) -> Picture:
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "plots need matplotlib, which is not installed: pip install 'minipaged[pictures]'"
        ) from None
    with matplotlib.rc_context(_style(matplotlib)):
        figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        axes = figure.add_subplot()
        axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
        draw(axes)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    label = title or f"{ylabel} over {xlabel}".strip()
    parts = [title, ylabel and f"({ylabel})", _table(header, rows)]
    return Picture(_tidy(out.getvalue(), label), "\n".join(part for part in parts if part))


def _style(matplotlib: Any) -> Any:
    """matplotlib's own defaults, whatever the user's settings are, and ours on top."""
    defaults = {k: v for k, v in matplotlib.rcParamsDefault.items() if k.startswith(_OWN)}
    return {
        **defaults,
        "axes.axisbelow": True,
        "axes.grid": True,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlelocation": "left",
        "axes.titlesize": 11,
        "font.size": 9.5,
        "grid.color": "#e0e0e0",
        "hatch.linewidth": 0.7,
        "lines.linewidth": 1.7,
        "svg.fonttype": "none",
        "svg.hashsalt": "minipaged",
    }


def _tidy(svg: str, title: str) -> str:
    """Begin with <svg>, with a size in pixels and a title; leave out what only editors need."""
    svg = svg[svg.index("<svg ") :]
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    if found is None:
        raise RuntimeError("matplotlib drew an SVG without a viewBox")
    width, height = (round(float(points) * 4 / 3) for points in found.groups())
    label = html.escape(title)
    svg = re.sub(r"\s*<style[^>]*>[^<]*</style>", "", svg)  # it would reach the whole page
    svg = re.sub("<[^<>]+>", lambda tag: _DIGITS.sub(_two_digits, tag[0]), svg)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{width}" height="{height}" {found[0]} role="img" aria-label="{label}" '
        f'stroke-linejoin="round" stroke-linecap="butt">'
        f"<title>{label}</title>"
    )
    return head + svg[svg.index(">") + 1 :].strip()


def _two_digits(number: re.Match[str]) -> str:
    """The last digits of a place differ from processor to processor, and nobody sees them."""
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _table(header: list[str], rows: list[list[Any]]) -> str:
    """Right-aligned columns."""
    cells = [header, *([_number(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(_row(row, widths) for row in cells)


def _row(row: Iterable[str], widths: Iterable[int]) -> str:
    return "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))


def _number(value: Any) -> str:
    """A cell: whole numbers in full, others with four digits."""
    if isinstance(value, str):
        return value
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"
