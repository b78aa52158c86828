"""A stretch of memory, unit by unit: who has reserved what, and what of it is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from minipaged.viz.figure_parts import Named, name_beside, titled
from minipaged.viz.figure_svg import (
    DIM,
    EDGE,
    GROUND,
    INK,
    MARGIN,
    Canvas,
    fill_part,
    shade,
    text_width,
)
from minipaged.viz.palette import Palette
from minipaged.viz.picture import Picture
from minipaged.viz.text import FREE

RESERVED = "-"
MAX_COLUMNS, MAX_ROWS = 256, 64
HEIGHT = 20

Span = tuple[int, int, str, int]


def show_slots(total: int, spans: Sequence[Span], *, columns: int = 64, title: str = "") -> Picture:
    """A stretch of memory, `columns` units to a row.

    spans: (start, length, name, used): who has reserved which units, and how many of them, from
        the first on, are really used. Used units are solid, reserved ones that nobody uses
        striped ("-" in the text form), free ones empty.

    ValueError if spans overlap, reach beyond `total`, or use more than they hold.
    """
    _require_spans(total, spans, columns)
    palette = Named(dict.fromkeys(name for _, _, name, _ in spans))
    reserved, used = sum(span[1] for span in spans), sum(span[3] for span in spans)
    facts = (
        f"{total:,} slots: {used:,} used, {reserved - used:,} reserved but empty, "
        f"{total - reserved:,} free"
    )
    canvas, y = titled(title)
    canvas.text(MARGIN, y + 8, facts, ink=DIM)
    _draw_rows(canvas, y + 18, total, spans, columns, palette)
    lines = [*_rows(total, spans, columns, palette), "", *_facts(spans, palette)]
    parts = [title, facts, "\n".join(lines).rstrip()]
    words = f"{title or 'memory'}: {facts}"
    return Picture(canvas.svg(words), "\n\n".join(part for part in parts if part))


def _require_spans(total: int, spans: Sequence[Span], columns: int) -> None:
    if not 1 <= columns <= MAX_COLUMNS:
        raise ValueError(f"columns is {columns!r}: choose from 1 to {MAX_COLUMNS}")
    if not 1 <= total <= MAX_ROWS * columns:
        raise ValueError(
            f"total is {total!r}, but {columns} columns show 1 to {MAX_ROWS * columns} units: "
            f"draw a part of the memory, or choose more columns"
        )
    end, before = 0, ""
    for start, length, name, used in sorted(spans):
        if start < 0 or length < 1 or start + length > total:
            raise ValueError(
                f"{name} reserves {length} units from {start} on, but the memory has the units "
                f"0 to {total - 1}"
            )
        if start < end:
            raise ValueError(f"{name} begins at {start}, inside the reservation of {before}")
        if not 0 <= used <= length:
            raise ValueError(f"{name} uses {used} of its {length} units: give 0 to {length}")
        end, before = start + length, name


def _draw_rows(
    canvas: Canvas, y: float, total: int, spans: Sequence[Span], columns: int, palette: Palette
) -> None:
    """The rows, each beginning with the number of its first unit."""
    label = text_width(str(total - 1)) + 8
    unit = min(20.0, 640 / columns)
    for row, first in enumerate(range(0, total, columns)):
        top = y + row * (HEIGHT + 3)
        canvas.text(MARGIN + label - 8, top + 14, str(first), ink=DIM, anchor="end")
        end = min(first + columns, total)
        canvas.rect(MARGIN + label, top, (end - first) * unit, HEIGHT, GROUND, EDGE)
        for span in spans:
            _draw_span(canvas, (MARGIN + label, top, unit), span, (first, end), palette)


def _draw_span(
    canvas: Canvas,
    place: tuple[float, float, float],
    span: Span,
    row: tuple[int, int],
    palette: Palette,
) -> None:
    """The part of a span that lies in one row. place: x and y of the row, width of a unit."""
    left, top, unit = place
    start, length, name, used = span
    begin, end = max(start, row[0]), min(start + length, row[1])
    if begin >= end:
        return
    split = min(max(start + used, begin), end)
    mark = palette[name]
    x, middle, right = (left + (i - row[0]) * unit for i in (begin, split, end))
    if split < end:
        canvas.rect(middle, top, right - middle, HEIGHT, GROUND, shade(mark.colour))
        _hatch(canvas, middle, right, top, shade(mark.colour))
    if split > begin:
        fill_part(canvas, (x, top, middle - x, HEIGHT), mark, 1.0)
        _label(canvas, (x, middle), top, (name, mark.sign), mark.ink)
    else:
        _label(canvas, (x, right), top, (name, mark.sign), INK, ground=True)


def _label(
    canvas: Canvas,
    between: tuple[float, float],
    top: float,
    words: tuple[str, str],
    ink: str,
    ground: bool = False,
) -> None:
    """The first of the words that fits, in the middle. ground: white behind it."""
    left, right = between
    for word in words:
        width = text_width(word)
        if width + 4 <= right - left:
            at = (left + right) / 2
            if ground:
                canvas.rect(at - width / 2 - 2, top + 3, width + 4, HEIGHT - 6, GROUND)
            canvas.text(at, top + 14, word, ink=ink, anchor="middle", bold=True)
            return


def _hatch(canvas: Canvas, left: float, right: float, top: float, colour: str) -> None:
    """Slanted lines at fixed places of the page, so that the rows look alike."""
    path = ""
    for x in range(int(left - HEIGHT) // 6 * 6, int(right) + 1, 6):
        low, high = max(x, left), min(x + HEIGHT, right)
        if low < high:
            path += f"M{low:.1f} {top + HEIGHT - (low - x):.1f}"
            path += f"L{high:.1f} {top + HEIGHT - (high - x):.1f}"
    if path:
        canvas.lines(path, colour)


def _rows(total: int, spans: Sequence[Span], columns: int, palette: Palette) -> Iterator[str]:
    """One character a unit: the letter where it is used, "-" where reserved, "·" where free."""
    signs = [FREE] * total
    for start, length, name, used in spans:
        signs[start : start + length] = palette[name].sign * used + RESERVED * (length - used)
    width = len(str(total - 1))
    for first in range(0, total, columns):
        yield f"{first:>{width}}  {''.join(signs[first : first + columns])}"


def _facts(spans: Sequence[Span], palette: Palette) -> Iterator[str]:
    """A line per span."""
    for start, length, name, used in spans:
        beside = name_beside(palette[name], name)
        words = " ".join(filter(None, (palette[name].sign, "", beside)))
        yield f"{words}  from {start}: {length} reserved, {used} used"
