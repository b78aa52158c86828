"""Pictures of one step as plain text: no colour, no width of a terminal, no library.

They are what a notebook stores and a screen reader reads. Each is a function of a StepRecord and
of the palette that gives every request its letter.
"""

from __future__ import annotations

from minipaged.trace import StepRecord
from minipaged.viz.palette import Palette

FREE, SHARED = "·", "+"


def step_picture(record: StepRecord, block_size: int, palette: Palette) -> str:
    """Head line, pool and block tables of one step, one below the other."""
    head = (
        f"step {record.step}   tokens computed: {record.num_tokens}   "
        f"requests running: {len(record.tables)}, waiting: {len(record.waiting)}   "
        f"blocks free: {record.num_free}"
    )
    parts = [head, pool_grid(record, palette), block_tables(record, block_size, palette)]
    return "\n\n".join(part for part in parts if part)


def pool_grid(record: StepRecord, palette: Palette, columns: int = 32) -> str:
    """The pool, one character a block: its holder's letter, "+" if several share it, "·" if free.

    Each row begins with the id of its first block. Cost: O(blocks).
    """
    signs: dict[int, str] = {}
    for request_id, table in record.tables.items():
        sign = palette[request_id].sign
        for block_id in table:
            signs[block_id] = SHARED if block_id in signs else sign
    total = record.num_free + len(signs)
    width = len(str(max(total - 1, 0)))
    rows = []
    for first in range(0, total, columns):
        row = [signs.get(i, FREE) for i in range(first, min(first + columns, total))]
        rows.append(f"{first:>{width}}  {' '.join(row)}")
    return "\n".join(rows)


def block_tables(record: StepRecord, block_size: int, palette: Palette) -> str:
    """One line a running request: its letter, tokens in the cache after this step, empty slots
    behind them, and its block table."""
    now = {work.request_id: work.num_tokens for work in record.work}
    lines = []
    for request_id, table in record.tables.items():
        tokens = record.computed.get(request_id, 0) + now.get(request_id, 0)
        empty = len(table) * block_size - tokens
        lines.append(
            f"{palette[request_id].sign}  {tokens:>4} tokens, {empty:>2} empty  "
            f"[{', '.join(map(str, table))}]"
        )
    return "\n".join(lines)
