"""A pool of blocks, who holds them, and the order of its free queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from minipaged.trace import StepRecord
from minipaged.viz.figure_parts import Named, cells_of, draw_row, name_beside, shorten, titled
from minipaged.viz.figure_svg import DIM, MARGIN, Canvas, draw_chain, draw_grid
from minipaged.viz.palette import Palette
from minipaged.viz.picture import Picture
from minipaged.viz.text import pool_grid
from minipaged.viz.words import counted

MAX_COLUMNS = 32
MIN_RIGHT = 360  # where chains of a small pool are wrapped
_QUEUE = "free queue, next first"


def show_pool(
    num_blocks: int,
    held: Mapping[str, Sequence[int]],
    *,
    queue: Iterable[int] = (),
    columns: int = 16,
    title: str = "",
) -> Picture:
    """A pool of blocks and who holds them.

    held: block ids by name, in the order of the name's block table. queue: ids of the free queue,
        the next to be handed out first. columns: blocks in a row, at most 32.

    ValueError if an id is not in the pool.
    """
    order = list(queue)
    for name, ids in (*held.items(), ("the queue", order)):
        _require_ids(name, ids, num_blocks)
    if not 1 <= columns <= MAX_COLUMNS:
        raise ValueError(f"columns is {columns!r}: choose from 1 to {MAX_COLUMNS}")
    palette = Named(held)
    canvas, y = titled(title)
    y = draw_grid(canvas, y, cells_of(num_blocks, {}, held, palette), columns) + 8
    _draw_holders(canvas, y, held, order, palette)
    tables = {name: list(ids) for name, ids in held.items()}
    free = num_blocks - len({i for ids in held.values() for i in ids})
    grid = pool_grid(StepRecord(0, 0.0, 0.0, [], tables, {}, {}, [], free), palette, columns)
    parts = [title, grid, "\n".join(_lines(tables, order, palette))]
    words = f"{title or 'a pool'}: {free} of {counted(num_blocks, 'block')} free"
    return Picture(canvas.svg(words), "\n\n".join(part for part in parts if part))


def _draw_holders(
    canvas: Canvas,
    y: float,
    held: Mapping[str, Sequence[int]],
    order: list[int],
    palette: Palette,
) -> None:
    """A row per name, then the free queue."""
    right = max(canvas.right, MIN_RIGHT)
    names = _aligned(held, palette)
    for name, ids in held.items():
        links = [(str(i), 1.0) for i in ids]
        y = draw_row(canvas, y, palette[name], names[name], links, right) + 5
    if order:
        canvas.text(MARGIN, y + 14, _QUEUE, ink=DIM)
        links = shorten([(str(i), 0.0) for i in order])
        draw_chain(canvas, MARGIN, y + 21, links, None, right)


def _lines(tables: dict[str, list[int]], order: list[int], palette: Palette) -> list[str]:
    names = _aligned(tables, palette)
    lines = [
        "  ".join(filter(None, (palette[name].sign, names[name], str(ids))))
        for name, ids in tables.items()
    ]
    return [*lines, f"{_QUEUE}: {order}"] if order else lines


def _aligned(names: Iterable[str], palette: Palette) -> dict[str, str]:
    """What stands beside each letter, all of one length."""
    beside = {name: name_beside(palette[name], name) for name in names}
    width = max(map(len, beside.values()), default=0)
    return {name: words.ljust(width) for name, words in beside.items()}


def _require_ids(name: str, ids: Iterable[int], num_blocks: int) -> None:
    for block_id in ids:
        if type(block_id) is not int or not 0 <= block_id < num_blocks:
            raise ValueError(
                f"{name} holds block {block_id!r}, but this pool of {num_blocks} has the blocks "
                f"0 to {num_blocks - 1}"
            )
