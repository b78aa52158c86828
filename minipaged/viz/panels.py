"""The small parts of the terminal view: block tables, queues, the token budget, events.

Each is a function (record, state, room) -> lines of rich text that fit the room.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from minipaged.trace import StepRecord, Work
from minipaged.viz.palette import Mark
from minipaged.viz.state import Life, ViewState
from minipaged.viz.styles import DIM, Lines, fitted, hollow, solid
from minipaged.viz.words import counted


def table_lines(record: StepRecord, state: ViewState, width: int, height: int) -> Lines:
    """One line a running request: tokens computed of those known, work of this step, blocks."""
    now = {work.request_id: work.num_tokens for work in record.work}
    lines: Lines = []
    for request_id, table in record.tables.items():
        mark = state.life(request_id).mark
        line = Text.assemble((mark.sign, solid(mark)))
        known = record.known.get(request_id, 0)
        line.append(f" {record.computed.get(request_id, 0):>4}/{known:<4}")
        line.append(f"+{now.get(request_id, 0):<3} ", style=DIM)
        line.append(shorten_ids(table, width - line.cell_len))
        lines.append(fitted(line, width))
    for request_id, hosts in record.hosts.items():
        mark = state.life(request_id).mark
        line = Text.assemble((mark.sign, hollow(mark)), (" on the host  ", DIM))
        line.append(shorten_ids(hosts, width - line.cell_len), style=DIM)
        lines.append(fitted(line, width))
    if len(lines) > height:
        hidden = len(lines) - height + 1
        lines[height - 1 :] = [Text(f"… and {counted(hidden, 'table')} more", style=DIM)]
    return lines


def shorten_ids(ids: Sequence[int], width: int, dots: str = "…") -> str:
    """The ids, with the middle left out if they are too long; the end stays visible."""
    whole = " ".join(map(str, ids))
    if len(whole) <= width:
        return whole
    for tail in range(len(ids) - 1, 0, -1):
        head = min(2, tail - 1)
        text = " ".join([*map(str, ids[:head]), dots, *map(str, ids[-tail:])])
        if len(text) <= width:
            return text
    return dots


def queue_lines(record: StepRecord, state: ViewState, width: int, rows: int) -> Lines:
    """Where every request stands, as letters in `rows` lines (1 or 2); next in line comes first."""
    groups = list(queues(record, state).items())
    columns = [groups[i :: 4 // rows] for i in range(4 // rows)]
    fixed = sum(max(len(name) for name, _ in column) + 3 for column in columns) - 2
    most = [max(len(lives) for _, lives in column) for column in columns]
    gap = " " if fixed + 2 * sum(most) <= width else ""
    total = width - fixed
    limit = max(most) if gap or sum(most) <= total else _limit(most, total - 3 * len(columns))
    lines = [Text() for _ in range(rows)]
    for column in columns:
        start = max(line.cell_len for line in lines)
        label = max(len(name) for name, _ in column)
        for line, (name, lives) in zip(lines, column, strict=True):
            line.append(" " * (start - line.cell_len + 2 * (start > 0)))
            line.append(f"{name:<{label}} ", style=DIM)
            line.append_text(_badges(lives, limit, gap))
    return [fitted(line, width) for line in lines]


def queues(record: StepRecord, state: ViewState) -> dict[str, list[Life]]:
    """The requests by where they stand after the step; those that wait in the queue's order."""
    waits = [state.life(i) for i in record.waiting]
    others = state.with_status("waiting", "preempted", "swapped")
    waits += [life for life in others if life not in waits]
    return {
        "running": state.with_status("running"),
        "finished": state.with_status("finished", "aborted"),
        "waiting": [life for life in waits if life.status == "waiting"],
        "preempted": [life for life in waits if life.status in ("preempted", "swapped")],
    }


def _limit(sizes: Sequence[int], total: int) -> int:
    """The most letters per group so that groups of these sizes together show at most `total`."""
    limit = max(*sizes, 1)
    while limit > 1 and sum(min(size, limit) for size in sizes) > total:
        limit -= 1
    return limit


def _badges(lives: Sequence[Life], limit: int, gap: str) -> Text:
    badges = []
    for life in lives[:limit]:
        aside = life.status in ("preempted", "aborted")
        style = hollow(life.mark) + " strike" if aside else solid(life.mark)
        badges.append(Text(life.mark.sign, style=style))
    if len(lives) > limit:
        badges.append(Text(f"+{len(lives) - limit}"))
    return Text(gap).join(badges) if badges else Text("–", style=DIM)


def is_decode(work: Work, life: Life) -> bool:
    """One token behind the prompt: the request's last known token, computed to get the next."""
    return work.num_tokens == 1 and work.start_position >= life.num_prompt


def budget_line(record: StepRecord, state: ViewState, width: int) -> Text:
    """The step's tokens in proportion to the budget: decodes solid, chunks of prompts shaded."""
    budget = state.header.max_num_batched_tokens
    room = width // budget * budget or width
    line = Text()
    for work, cells in zip(record.work, _cells(record, budget, room), strict=True):
        life = state.life(work.request_id)
        if is_decode(work, life):
            line.append(life.mark.sign.ljust(cells)[:cells], style=solid(life.mark))
        else:
            _add_chunk(line, work, life.mark, cells)
    line.append("·" * (room - line.cell_len), style=DIM)
    return fitted(line, width)


def _cells(record: StepRecord, budget: int, room: int) -> list[int]:
    """Terminal columns of each share: rounded down, but at least one, at the largest's expense."""
    cells = [max(work.num_tokens * room // budget, 1) for work in record.work]
    while sum(cells) > room and max(cells) > 1:
        cells[cells.index(max(cells))] -= 1
    return cells


def _add_chunk(line: Text, work: Work, mark: Mark, cells: int) -> None:
    label = f"{mark.sign} {work.num_tokens}"
    if cells < len(label):
        label = mark.sign
    line.append(label[:cells], style=solid(mark))
    line.append("▒" * (cells - len(label)), style=hollow(mark))


def budget_words(record: StepRecord, state: ViewState) -> str:
    """The same in words: decodes, chunks, what is left."""
    decodes, chunks = 0, []
    for work in record.work:
        life = state.life(work.request_id)
        if is_decode(work, life):
            decodes += 1
            continue
        what = "redone" if life.num_preemptions else "of prompt"
        chunks.append(f"{life.mark.sign} {work.num_tokens} {what}")
    left = state.header.max_num_batched_tokens - record.num_tokens
    parts = [counted(decodes, "decode"), *chunks, f"{left} unused"]
    return ", ".join(parts)


def event_lines(record: StepRecord, state: ViewState, width: int, height: int) -> Lines:
    """The latest events, newest last; those of this step stand out."""
    lines: Lines = []
    for entry in state.log[-height:] if height > 0 else ():
        mark = state.life(entry.request_id).mark
        line = Text.assemble((f"{entry.step:>3} ", DIM), (mark.sign, solid(mark)))
        line.append(f" {entry.text}", style="" if entry.step == record.step else DIM)
        lines.append(fitted(line, width))
    return lines
