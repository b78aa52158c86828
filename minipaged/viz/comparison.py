"""The rows of `minipaged compare` as a table that fits the terminal, and as a picture. No torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from minipaged.compare_rows import Row, Spread
from minipaged.viz.picture import Picture, side_by_side


class Column(NamedTuple):
    """A heading of one or two lines, and the cell of a row."""

    heading: str
    cell: Callable[[Row], str]


def _latency(spread: Spread | None) -> str:
    return "-" if spread is None else f"{1e3 * spread.mean:,.0f}/{1e3 * spread.p99:,.0f}"


def _memory(row: Row) -> str:
    return " ".join(f"{100 * share:.0f}".rjust(3) for share in row.memory.values())


WORK: tuple[Column, ...] = (
    Column("steps", lambda row: f"{row.steps:,}"),
    Column("time\ns", lambda row: f"{row.seconds:.2f}"),
    Column("most\nrun", lambda row: f"{row.peak_running:,}"),
    Column("idle\nplaces", lambda row: f"{row.idle_places:,}"),
    Column("useful\n%", lambda row: f"{100 * row.useful:.2f}"),
    Column("pad\ntokens", lambda row: f"{row.padding_tokens:,}"),
    Column("memory taken, %\nused later never out", _memory),
)
WAITS: tuple[Column, ...] = (
    Column("TTFT ms\nmean/p99", lambda row: _latency(row.ttft)),
    Column("TPOT ms\nmean/p99", lambda row: _latency(row.tpot)),
    Column("worst gap ms\nmean/p99", lambda row: _latency(row.gap)),
    Column("pre-\nempted", lambda row: f"{row.preemptions:,}"),
    Column("tokens\nredone", lambda row: f"{row.recomputed_tokens:,}"),
    Column("tokens\nswapped", lambda row: f"{row.swapped_tokens:,}"),
    Column("tokens\nhit", lambda row: f"{row.hit_tokens:,}"),
)
NOTES = """\
most run: requests at once; pad: what a rectangle of each static batch's prompts holds beside them
idle places: place-steps in which nothing was computed, of max_num_seqs a step; useful: the others
memory taken, over time: used; held, used later; held, never used; out: free, in pieces too small
TTFT: to the first token; TPOT: per further token; worst gap: longest wait between two of a request
redone: computed again after preemption; hit: found in the prefix cache"""


def tables(rows: Sequence[Row], width: int) -> Iterator[Table]:
    """One table, or as many as `width` characters make of it, each with the names in front."""
    whole = (*WORK, *WAITS)
    parts = [whole] if _width(rows, whole, 2) <= width else [WORK, WAITS]
    gap = 2 if all(_width(rows, columns, 2) <= width for columns in parts) else 1
    for columns in parts:
        while columns:
            count = len(columns)
            while count > 1 and _width(rows, columns[:count], gap) > width:
                count -= 1
            yield _table(rows, columns[:count], gap)
            columns = columns[count:]


def _table(rows: Sequence[Row], columns: Sequence[Column], gap: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0))
    table.add_column("", no_wrap=True)
    for column in columns:
        table.add_column(column.heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(row.name, *(column.cell(row) for column in columns))
    return table


def _width(rows: Sequence[Row], columns: Sequence[Column], gap: int) -> int:
    """Characters that a table of these columns needs."""
    wide = Console(width=1000)
    return Measurement.get(wide, wide.options, _table(rows, columns, gap)).maximum


def idle_longest(rows: Sequence[Row]) -> str:
    """Whose place idles longest in a static batch, in words; "" if none does."""
    found = [(idle, steps, name) for row in rows for name, (idle, steps) in row.idle.items()]
    idle, steps, name = max(found, default=(0, 0, ""))
    if not idle:
        return ""
    return (
        f"static: the place of {name} idles longest, {idle:,} of the {steps:,} steps of its batch"
    )


def picture(rows: Sequence[Row], title: str) -> Picture:
    """Time, memory and latencies of each row, one plot each. ImportError without matplotlib."""
    from minipaged.viz.plots import bars

    names = [row.name.replace(" + ", "\n+ ") for row in rows]
    kinds = {"used": "used", "later": "held, used later", "never": "held, never used"}
    kinds["outside"] = "free, too small"
    shares = {words: [100 * row.memory[kind] for row in rows] for kind, words in kinds.items()}
    waits = {
        "time to the first token": [row.ttft for row in rows],
        "longest wait between two tokens of a request": [row.gap for row in rows],
    }
    return side_by_side(
        bars(names, {"time": [row.seconds for row in rows]}, title=title, ylabel="seconds"),
        bars(names, shares, title="memory taken, over time", ylabel="%"),
        *(
            bars(names, {what: _p99(spreads)}, title=f"{what}, p99", ylabel="ms")
            for what, spreads in waits.items()
        ),
    )


def _p99(spreads: Sequence[Spread | None]) -> list[float]:
    return [1e3 * spread.p99 if spread else 0.0 for spread in spreads]
