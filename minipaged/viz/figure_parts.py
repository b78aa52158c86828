"""What several pictures share: marks by name, cells of a pool, rows of blocks, titles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from minipaged.viz.figure_svg import MARGIN, Canvas, draw_cell, draw_chain, text_width
from minipaged.viz.palette import SIGNS, Mark, Palette, nth_mark

MAX_LINKS = 48
SHARED_MARK = Mark("+", "#404040", "#ffffff")


class Named(Palette):
    """Marks by name: a single letter or digit is its own sign, in that sign's colour, so that B
    looks alike in every picture. Other names get the signs in turn."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__()
        known = list(names)
        short = all(len(name) == 1 for name in known)
        for number, name in enumerate(known):
            own = short and name in SIGNS
            mark = nth_mark(SIGNS.index(name) if own else number)
            self._marks[name] = mark._replace(sign=name) if short else mark


def name_beside(mark: Mark, name: str) -> str:
    """What has to stand beside a mark: the name, unless the mark says it."""
    return "" if mark.sign == name else name


def cells_of(
    num_blocks: int,
    full: Mapping[int, float],
    tables: Mapping[str, Sequence[int]],
    palette: Palette,
) -> list[tuple[Mark | None, float]]:
    """(mark, how full) of each block; no mark for a free one. Blocks not in `full` are full."""
    marks: dict[int, Mark] = {}
    for name, table in tables.items():
        for block_id in table:
            marks[block_id] = SHARED_MARK if block_id in marks else palette[name]
    return [(marks.get(i), full.get(i, 1.0)) for i in range(num_blocks)]


def draw_row(
    canvas: Canvas,
    y: float,
    mark: Mark,
    words: str,
    links: list[tuple[str, float]],
    right: float,
) -> float:
    """Letter, words and a chain of blocks, wrapped before `right`; returns the y below."""
    draw_cell(canvas, MARGIN, y - 1, mark)
    x = MARGIN + 28.0
    if words:
        canvas.text(x, y + 13, words)
        x += text_width(words) + 12
    return draw_chain(canvas, x, y, shorten(links), mark, right)


def shorten(links: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """The links of a chain, the middle of a very long one left out."""
    if len(links) <= MAX_LINKS:
        return links
    left_out = len(links) - MAX_LINKS + 1
    return [*links[: MAX_LINKS - 8], (f"… {left_out} more …", 0.0), *links[-7:]]


def titled(title: str) -> tuple[Canvas, float]:
    """A new canvas with a title, and where to go on below it."""
    canvas = Canvas()
    if not title:
        return canvas, float(MARGIN)
    canvas.text(MARGIN, 22, title, size=13, bold=True)
    return canvas, 32.0
