"""Drawing by hand: rectangles and text into one SVG string, the same bytes for the same calls.

Sizes are in pixels. A picture brings its own white ground, so that it reads the same in light and
dark notebooks. Colours come from viz/palette.py, and none of them is ever the only sign.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Iterable, Sequence

from minipaged.viz.palette import DARK, Mark

MAX_WIDTH = 760
MARGIN = 10
CELL = 20  # side of a block in a pool
LINK_HEIGHT = 17  # of a block in a chain
GROUND, INK, DIM, EDGE = "#ffffff", DARK, "#595959", "#a6a6a6"
_FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def text_width(words: str, size: float = 12) -> float:
    """About how wide monospace text is: 0.61 of its size a character, two for East Asian ones."""
    return 0.61 * size * sum(1 if ord(c) < 0x1100 else 2 for c in words)


def tint(colour: str) -> str:
    """A colour thinned with white: near-black text can be read on it."""
    return _each_part(colour, lambda part: 255 - (255 - part) * 0.55)


def shade(colour: str) -> str:
    """A darker colour, for thin lines on white."""
    return _each_part(colour, lambda part: part * 0.62)


def _each_part(colour: str, change: Callable[[int], float]) -> str:
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(change(part)):02x}" for part in parts)


class Canvas:
    """Collects shapes and grows with them; `svg` makes the picture."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.right = 0.0
        self.bottom = 0.0

    def rect(
        self, x: float, y: float, width: float, height: float, fill: str, edge: str = ""
    ) -> None:
        """A rectangle; with an edge its line stays inside, so that neighbours do not touch."""
        self.reach(x + width, y + height)
        line = ""
        if edge:
            x, y, width, height = x + 0.5, y + 0.5, width - 1, height - 1
            line = f' stroke="{edge}"'
        size = f'width="{_n(width)}" height="{_n(height)}"'
        self._parts.append(f'<rect x="{_n(x)}" y="{_n(y)}" {size} fill="{fill}"{line}/>')

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        ink: str = INK,
        size: float = 12,
        anchor: str = "start",
        bold: bool = False,
    ) -> None:
        """Words on the base line y. anchor: start, middle or end."""
        width = text_width(words, size)
        self.reach(x + {"start": width, "middle": width / 2, "end": 0.0}[anchor], y + size / 4)
        style = f' font-size="{_n(size)}"' if size != 12 else ""
        style += f' text-anchor="{anchor}"' if anchor != "start" else ""
        style += ' font-weight="bold"' if bold else ""
        style += f' fill="{ink}"' if ink != INK else ""
        # SVG drops leading spaces and joins several to one, but not those that may not break
        kept = html.escape(re.sub("^ +|  +", lambda m: "\xa0" * len(m[0]), words))
        self._parts.append(f'<text x="{_n(x)}" y="{_n(y)}"{style}>{kept}</text>')

    def lines(self, path: str, ink: str) -> None:
        """Thin lines. path: as in an SVG d attribute."""
        self._parts.append(f'<path d="{path}" stroke="{ink}" fill="none"/>')

    def nest(self, x: float, y: float, svg: str, width: float, height: float) -> None:
        """Another picture, with its top left corner at (x, y)."""
        self.reach(x + width, y + height)
        self._parts.append(svg.replace("<svg ", f'<svg x="{_n(x)}" y="{_n(y)}" ', 1))

    def svg(self, title: str, margin: float = MARGIN) -> str:
        """The picture. title: what it shows, for those who hear it."""
        width, height = math.ceil(self.right + margin), math.ceil(self.bottom + margin)
        label = html.escape(title)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" aria-label="{label}">'
            f"<title>{label}</title>"
            f'<rect width="{width}" height="{height}" fill="{GROUND}"/>'
            f'<g font-family="{_FONT}" font-size="12" fill="{INK}">{"".join(self._parts)}</g></svg>'
        )

    def reach(self, x: float, y: float) -> None:
        """Let the picture hold the point (x, y)."""
        self.right, self.bottom = max(self.right, x), max(self.bottom, y)


def draw_cell(canvas: Canvas, x: float, y: float, mark: Mark, full: float = 1.0) -> None:
    """One block that is held: solid if full, filled in part and paler if not."""
    middle, base, side = x + CELL / 2, y + CELL / 2 + 4, CELL - 2
    fill_part(canvas, (x + 1, y + 1, side, side), mark, full)
    ink = mark.ink if full >= 1 else INK
    canvas.text(middle, base, mark.sign, ink=ink, anchor="middle", bold=True)


def fill_part(
    canvas: Canvas, box: tuple[float, float, float, float], mark: Mark, full: float
) -> None:
    """A box filled from the left. box: x, y, width, height. full: from 0 to 1."""
    x, y, width, height = box
    if full >= 1:
        canvas.rect(x, y, width, height, mark.colour)
        return
    canvas.rect(x, y, width, height, GROUND, shade(mark.colour))
    if full > 0:
        canvas.rect(x + 1, y + 1, max((width - 2) * full, 1), height - 2, tint(mark.colour))


def draw_grid(
    canvas: Canvas,
    y: float,
    cells: Sequence[tuple[Mark | None, float]],
    columns: int,
    max_rows: int = 40,
) -> float:
    """A pool, (mark, how full) per block; each row begins with its first block's id.

    Returns where the next thing may begin. What does not fit into max_rows is counted in words.
    """
    label = text_width(str(max(len(cells) - 1, 0))) + 8
    shown = min(len(cells), columns * max_rows)
    free = ""
    for first in range(0, shown, columns):
        canvas.text(MARGIN + label - 8, y + CELL / 2 + 4, str(first), ink=DIM, anchor="end")
        for place, (mark, full) in enumerate(cells[first : min(first + columns, shown)]):
            x = MARGIN + label + place * CELL
            if mark is None:
                free += f"M{_n(x + 1.5)} {_n(y + 1.5)}h{CELL - 3}v{CELL - 3}h{3 - CELL}z"
                canvas.reach(x + CELL, y + CELL)
            else:
                draw_cell(canvas, x, y, mark, full)
        y += CELL
    if free:
        canvas.lines(free, EDGE)
    if shown < len(cells):
        canvas.text(MARGIN, y + 14, f"… and {len(cells) - shown:,} more blocks", ink=DIM)
        y += 18
    return y


def draw_chain(
    canvas: Canvas,
    x: float,
    y: float,
    links: Iterable[tuple[str, float]],
    mark: Mark | None,
    right: float,
) -> float:
    """Small boxes in a row, (words, how full) each, joined by lines and wrapped before `right`.

    Returns the y below the last row.
    """
    left = x
    for words, full in links:
        width = text_width(words, 10) + 8
        if x > left:
            if x + 6 + width > right:
                x, y = left, y + LINK_HEIGHT + 3
            else:
                canvas.rect(x, y + LINK_HEIGHT / 2 - 0.5, 6, 1, DIM)
                x += 6
        box = (x, y, width, LINK_HEIGHT)
        if mark is None:
            canvas.rect(*box, GROUND, EDGE)
        else:
            fill_part(canvas, box, mark, full)
        ink = mark.ink if mark is not None and full >= 1 else INK
        canvas.text(x + width / 2, y + 12, words, ink=ink, size=10, anchor="middle")
        x += width
    return y + LINK_HEIGHT


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
