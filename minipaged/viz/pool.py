"""The block pool as a grid of cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

from minipaged.trace import StepRecord
from minipaged.viz.palette import Mark
from minipaged.viz.state import ViewState
from minipaged.viz.styles import DIM, Lines, hollow, solid
from minipaged.viz.words import counted


class Grid(NamedTuple):
    """How a pool is laid out. cell: terminal columns per block. columns: blocks per row.
    label: terminal columns for the id of a row's first block."""

    cell: int
    columns: int
    label: int

    @property
    def width(self) -> int:
        """Terminal columns of a row."""
        return self.label + self.cell * self.columns - (self.cell > 2)


def grid_for(num_blocks: int, width: int, height: int) -> Grid:
    """The roomiest grid with all blocks in a quarter of `height`, else in half of it, else dense.

    A row holds a power of two: the row and column of a block are easy to find from its id.
    """
    label = len(str(max(num_blocks - 1, 0))) + 1
    for most in (height // 4, height // 2):
        for cell in (3, 2, 1):
            for columns in (64, 32, 16, 8):
                grid = Grid(cell, columns, label)
                rows = -(-num_blocks // columns)
                # a row far longer than the pool would only push the texts aside
                if grid.width <= width and rows <= most and columns < 2 * max(num_blocks, 5):
                    return grid
    return Grid(1, max(width - label, 1), label)


def holders(record: StepRecord) -> dict[int, list[str]]:
    """Who holds each block; more than one for a shared block."""
    found: dict[int, list[str]] = {}
    for request_id, table in record.tables.items():
        for block_id in table:
            found.setdefault(block_id, []).append(request_id)
    return found


def partial_blocks(record: StepRecord, state: ViewState) -> set[int]:
    """Blocks that have room for further tokens of the request that holds them."""
    size = state.header.block_size
    return {
        block_id
        for request_id, table in record.tables.items()
        for block_id in table[state.life(request_id).num_computed // size :]
    }


def pool_lines(record: StepRecord, state: ViewState, grid: Grid, height: int) -> Lines:
    """The pool, one cell a block: full, still filling (hollow), shared ("+") or free (a dot)."""
    total = state.header.num_blocks
    found, partial = holders(record), partial_blocks(record, state)
    lines: Lines = []
    for first in range(0, total, grid.columns):
        line = Text.assemble((f"{first:>{grid.label - 1}} ", DIM))
        for block_id in range(first, min(first + grid.columns, total)):
            who = [state.life(i).mark for i in found.get(block_id, ())]
            line.append_text(_cell(who, block_id in partial, grid.cell))
        line.rstrip()
        lines.append(line)
    if len(lines) > height:
        left = total - (height - 1) * grid.columns
        lines[height - 1 :] = [Text(f"… and {counted(left, 'block')} more", style=DIM)]
    return lines


def _cell(who: Sequence[Mark], partial: bool, width: int) -> Text:
    """One block. In a cell of one column a shared block is underlined instead of marked "+"."""
    ink, gap = min(width, 2), " " * (width > 2)
    if not who:
        return Text("·".ljust(ink) + gap, style=DIM)
    style, shared = (hollow if partial else solid)(who[0]), len(who) > 1
    if ink == 2:
        return Text.assemble((f"{who[0].sign}{'+' if shared else ' '}", style), gap)
    return Text(who[0].sign, style=style + " underline" * shared)


def legend(any_shared: bool) -> Text:
    """What the cells mean, in one line."""
    grey = Mark("x", "#b3b3b3", "#121212")
    parts = [("x ", solid(grey)), (" full  ", DIM), ("x ", hollow(grey)), (" filling  ", DIM)]
    parts += [("x+", solid(grey)), (" shared  ", DIM)] if any_shared else []
    return Text.assemble(*parts, ("· free", DIM))
