"""The terminal view of one step: pool, block tables, queues, token budget, events, answers.

Pure: a Frame is a function of (record, state) and of the room that it is given; it draws from 80
columns and 24 lines up. `plain` tells the same in ASCII-friendly text. No torch.
"""

from __future__ import annotations

from rich.box import ROUNDED
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.layout import Layout
from rich.panel import Panel
from rich.text import Text

from minipaged.trace import StepRecord
from minipaged.viz.answers import answer_lines
from minipaged.viz.panels import budget_line, budget_words, event_lines, queue_lines, table_lines
from minipaged.viz.plain import plain
from minipaged.viz.pool import Grid, grid_for, holders, legend, pool_lines
from minipaged.viz.state import ViewState
from minipaged.viz.styles import DIM, Lines, fitted
from minipaged.viz.words import counted

__all__ = ["Frame", "ViewState", "plain"]

BORDER = 4  # columns that a panel takes for itself; its lines are 2
FRAMED_FROM = 28  # lines from which on all parts have frames


class Frame:
    """One step as a picture that fills the room it is rendered in.

    status: shown at the right of the first line. hint: the last line, such as the keys; no such
    line if empty.
    """

    def __init__(
        self, record: StepRecord, state: ViewState, *, status: str = "", hint: str = ""
    ) -> None:
        self.record = record
        self.state = state
        self.status = status
        self.hint = hint

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.layout(options.max_width, options.height or console.height)

    def layout(self, width: int, height: int) -> Layout:
        """The parts in their places."""
        framed = height >= FRAMED_FROM
        body = height - 1 - (4 if framed else 3) - bool(self.hint)
        half = width * 49 // 100
        grid = grid_for(self.state.header.num_blocks, half - BORDER, body)
        left = min(max(grid.width + BORDER, width * 2 // 5), half)
        root = Layout()
        parts = [
            Layout(self._head(width), size=1),
            self._framed_top(left, width - left) if framed else self._bare_top(width),
            self._body(grid, left, width - left, body),
        ]
        if self.hint:
            parts.append(Layout(Text(f" {self.hint}", style=DIM, no_wrap=True), size=1))
        root.split_column(*parts)
        return root

    def _head(self, width: int) -> Text:
        state = self.state
        line = Text(f" minipaged   step {self.record.step}", style="bold")
        line.append(
            f"   {counted(state.num_tokens, 'token')} computed"
            f"   {counted(state.num_preemptions, 'preemption')}",
            style="not bold",
        )
        fitted(line, width - len(self.status) - 3)
        line.append(" " * (width - line.cell_len - len(self.status) - 1))
        return line.append(self.status, style=DIM)

    def _framed_top(self, left: int, right: int) -> Layout:
        record, state = self.record, self.state
        top = Layout(size=4)
        queues = queue_lines(record, state, left - BORDER, 2)
        words = Text(budget_words(record, state), style=DIM)
        budget = [budget_line(record, state, right - BORDER), words]
        top.split_row(
            Layout(panel("Requests", queues, left - BORDER), size=left),
            Layout(panel(self._budget_title(), budget, right - BORDER)),
        )
        return top

    def _bare_top(self, width: int) -> Layout:
        record, state, inner = self.record, self.state, width - 2
        words = Text(f"{self._budget_title()}: {budget_words(record, state)}", style=DIM)
        lines = [*queue_lines(record, state, inner, 1), budget_line(record, state, inner), words]
        return Layout(Group(*(Text(" ").append_text(fitted(x, inner)) for x in lines)), size=3)

    def _body(self, grid: Grid, left: int, right: int, height: int) -> Layout:
        answers = answer_lines(self.state, right - BORDER, height - 2)
        body = Layout(size=height)
        body.split_row(
            self._left(grid, left - BORDER, height, left),
            Layout(panel("Questions and answers", answers, right - BORDER)),
        )
        return body

    def _left(self, grid: Grid, inner: int, height: int, size: int) -> Layout:
        record, state = self.record, self.state
        pool = pool_lines(record, state, grid, max(height // 2, 1))
        rows = min(state.header.max_num_seqs, max(height - len(pool) - 8, 1))
        tables = table_lines(record, state, inner, rows)
        events = event_lines(record, state, inner, height - len(pool) - rows - 6)
        shared = any(len(who) > 1 for who in holders(record).values())
        column = Layout(size=size)
        column.split_column(
            _fixed(panel(self._pool_title(), pool, inner, legend(shared)), len(pool) + 2),
            _fixed(panel("Block tables", tables, inner, TABLE_LEGEND), rows + 2),
            Layout(panel("Events", events, inner)),
        )
        return column

    def _pool_title(self) -> str:
        total = counted(self.state.header.num_blocks, "block")
        return f"Pool: {self.record.num_free} of {total} free"

    def _budget_title(self) -> str:
        budget = self.state.header.max_num_batched_tokens
        return f"Token budget: {self.record.num_tokens} of {budget}"


TABLE_LEGEND = Text("computed/known +now  block ids", style=DIM)


def panel(title: str, lines: Lines, width: int, legend: Text | None = None) -> Panel:
    """Lines in a quiet frame. width: of the lines. legend: in the lower edge."""
    return Panel(
        Group(*(fitted(line, width) for line in lines)),
        title=Text(title, style="bold default"),
        title_align="left",
        subtitle=legend,
        subtitle_align="left",
        border_style=DIM,
        box=ROUNDED,
        padding=(0, 1),
    )


def _fixed(part: RenderableType, size: int) -> Layout:
    return Layout(part, size=size)
