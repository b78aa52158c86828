"""One step of a trace: the pool, the block tables, who waits, and what happened."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator

from minipaged.trace import StepRecord, Trace
from minipaged.viz.figure_parts import cells_of, draw_row, shorten
from minipaged.viz.figure_svg import DIM, MARGIN, Canvas, draw_chain, draw_grid, text_width
from minipaged.viz.palette import Palette
from minipaged.viz.picture import Picture
from minipaged.viz.text import step_picture
from minipaged.viz.words import counted

COLUMNS = 32
MAX_TABLES = 40
MAX_SIGNS = 24
MIN_RIGHT = 560  # where tables of a small pool are wrapped
_LINE = 74  # characters of a line of news


def show_step(trace: Trace, step: int) -> Picture:
    """Pool and block tables as the step at index `step` of a trace used them.

    Requests have their letters in order of arrival. Blocks are drawn as full as they are after
    the step. ValueError if there is no such step. Cost: O(steps before it + blocks).
    """
    count = len(trace.steps)
    if type(step) is not int or not 0 <= step < count:
        known = f"choose from 0 to {count - 1}" if count else "there is nothing to show"
        raise ValueError(f"step is {step!r}, but the trace has {counted(count, 'step')}: {known}")
    record, palette = trace.steps[step], _palette_at(trace, step)
    canvas = Canvas()
    title = _draw_head(canvas, record, trace.num_blocks)
    full = _fullness(record, trace.block_size)
    y = draw_grid(canvas, 50, cells_of(trace.num_blocks, full, record.tables, palette), COLUMNS)
    right = max(canvas.right, MIN_RIGHT)
    y = _draw_tables(canvas, y + 10, (record, trace.block_size), palette, right)
    y = _draw_waiting(canvas, y, record, palette, right)
    news = textwrap.wrap(", ".join(_news(record, palette)), _LINE)
    for number, line in enumerate(news):
        canvas.text(MARGIN, y + 15 + 16 * number, line)
    parts = [step_picture(record, trace.block_size, palette), "\n".join(news)]
    return Picture(canvas.svg(title), "\n\n".join(part for part in parts if part))


def _palette_at(trace: Trace, step: int) -> Palette:
    """Letters in order of arrival, as the terminal view gives them, whatever step is drawn."""
    palette = Palette()
    for record in trace.steps[: step + 1]:
        ids = [event.request_id for event in record.events]
        ids += [work.request_id for work in record.work]
        for request_id in (*ids, *record.tables, *record.waiting):
            palette[request_id]
    return palette


def _draw_head(canvas: Canvas, record: StepRecord, num_blocks: int) -> str:
    """Two lines of figures; returns them as one for those who hear the picture."""
    name = f"step {record.step}"
    computed = f"{counted(record.num_tokens, 'token')} computed"
    free = f"{record.num_free} of {counted(num_blocks, 'block')} free"
    state = f"{len(record.tables)} running, {len(record.waiting)} waiting, {free}"
    canvas.text(MARGIN, 22, name, size=13, bold=True)
    canvas.text(MARGIN + text_width(name, 13) + 14, 22, computed)
    canvas.text(MARGIN, 40, state, ink=DIM)
    return f"{name}: {computed}, {state}"


def _tokens(record: StepRecord) -> dict[str, int]:
    """Tokens in the cache after the step, of each running request."""
    now = {work.request_id: work.num_tokens for work in record.work}
    return {i: record.computed.get(i, 0) + now.get(i, 0) for i in record.tables}


def _fullness(record: StepRecord, block_size: int) -> dict[int, float]:
    """How full each held block is after the step, from 0 to 1."""
    full: dict[int, float] = {}
    for request_id, tokens in _tokens(record).items():
        for place, block_id in enumerate(record.tables[request_id]):
            share = min(max(tokens - place * block_size, 0) / block_size, 1.0)
            full[block_id] = max(share, full.get(block_id, 0.0))
    return full


def _draw_tables(
    canvas: Canvas, y: float, step: tuple[StepRecord, int], palette: Palette, right: float
) -> float:
    """A row per running request. step: the record and the block size. Returns the y below."""
    record, block_size = step
    full = _fullness(record, block_size)
    holders = Counter(block_id for table in record.tables.values() for block_id in table)
    for request_id, tokens in list(_tokens(record).items())[:MAX_TABLES]:
        table = record.tables[request_id]
        words = f"{tokens:>4} tokens, {len(table) * block_size - tokens:>2} empty"
        links = [(f"{i}{'+' * (holders[i] > 1)}", full[i]) for i in table]
        y = draw_row(canvas, y, palette[request_id], words, links, right) + 5
    if len(record.tables) > MAX_TABLES:
        words = f"… and {len(record.tables) - MAX_TABLES:,} more requests"
        canvas.text(MARGIN, y + 12, words, ink=DIM)
        y += 20
    return y


def _draw_waiting(
    canvas: Canvas, y: float, record: StepRecord, palette: Palette, right: float
) -> float:
    """The letters of those that wait, if any; returns the y below."""
    if not record.waiting:
        return y
    words = "waiting, next first"
    canvas.text(MARGIN, y + 14, words, ink=DIM)
    links = shorten([(palette[i].sign, 0.0) for i in record.waiting])
    x = MARGIN + text_width(words) + 12
    return draw_chain(canvas, x, y + 1, links, None, right) + 4


def _news(record: StepRecord, palette: Palette) -> Iterator[str]:
    """What happened to requests and blocks, a few words for each kind of event."""
    kinds: dict[str, list[str]] = {}
    for event in record.events:
        kind = f"{event.kind} ({event.detail})" if event.detail else event.kind
        kinds.setdefault(event.request_id, []).append(kind)
    groups: dict[str, list[str]] = {}
    for request_id, happened in kinds.items():
        groups.setdefault(" and ".join(happened), []).append(palette[request_id].sign)
    for kind, signs in groups.items():
        more = f" and {len(signs) - MAX_SIGNS} more" if len(signs) > MAX_SIGNS else ""
        yield f"{' '.join(signs[:MAX_SIGNS])}{more} {kind}"
    for source, target in record.copies:
        yield f"block {source} copied to {target}"
