"""Which places of a pool a program reads: a line for each block."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from minipaged.viz.figure_parts import titled
from minipaged.viz.figure_svg import DIM, EDGE, GROUND, MARGIN, Canvas, text_width
from minipaged.viz.palette import nth_mark
from minipaged.viz.picture import Picture
from minipaged.viz.text import FREE
from minipaged.viz.words import counted

READ = "#"
MAX_BLOCKS, MAX_PLACES = 64, 256
_HEIGHT, _WIDEST = 18, 20.0


def show_reads(
    num_blocks: int,
    block_numbers: int,
    places: Iterable[int],
    *,
    unit: int = 1,
    title: str = "",
) -> Picture:
    """The places of a pool that were read, by their distance from its beginning.

    places: in numbers. block_numbers: numbers of a block, drawn as one line. unit: numbers that a
    square stands for; it is solid ("#" in the text form) if any of them was read.

    ValueError if a place is outside of the pool, or the pool is too large to draw.
    """
    found = sorted(set(places))
    _require(num_blocks, block_numbers, unit, found)
    runs = 1 + sum(after != before + 1 for before, after in pairwise(found)) if found else 0
    facts = f"{counted(len(found), 'number')} in {counted(runs, 'piece')}"
    columns = -(-block_numbers // unit)
    squares = {(place // block_numbers, place % block_numbers // unit) for place in found}
    canvas, y = titled(title)
    canvas.text(MARGIN, y + 8, facts, ink=DIM)
    _draw(canvas, y + 18, num_blocks, columns, squares)
    wide = len(str(num_blocks - 1))
    lines = [
        f"block {block:{wide}}  "
        + "".join(READ if (block, column) in squares else FREE for column in range(columns))
        for block in range(num_blocks)
    ]
    parts = [title, facts, "\n".join(lines)]
    words = f"{title or 'a pool'}: {facts}"
    return Picture(canvas.svg(words), "\n\n".join(part for part in parts if part))


def _require(num_blocks: int, block_numbers: int, unit: int, found: list[int]) -> None:
    if not (1 <= num_blocks <= MAX_BLOCKS and unit >= 1 and block_numbers >= 1):
        raise ValueError(f"num_blocks is {num_blocks!r}: 1 to {MAX_BLOCKS} blocks can be drawn")
    if block_numbers > MAX_PLACES * unit:
        raise ValueError(
            f"a block of {block_numbers} numbers has more than {MAX_PLACES} squares of {unit}: "
            "choose a larger unit"
        )
    last = num_blocks * block_numbers - 1
    for place in (*found[:1], *found[-1:]):
        if not 0 <= place <= last:
            raise ValueError(f"place {place} is outside of the pool, which has 0 to {last}")


def _draw(
    canvas: Canvas, y: float, num_blocks: int, columns: int, squares: set[tuple[int, int]]
) -> None:
    """A line for each block, its number in front of it."""
    label = text_width(f"block {num_blocks - 1}") + 8
    side = min(_WIDEST, 640 / columns)
    colour = nth_mark(0).colour
    for block in range(num_blocks):
        top = y + block * (_HEIGHT + 3)
        canvas.text(MARGIN + label - 8, top + 13, f"block {block}", ink=DIM, anchor="end")
        for column in range(columns):
            fill = colour if (block, column) in squares else GROUND
            canvas.rect(MARGIN + label + column * side, top, side, _HEIGHT, fill, EDGE)
