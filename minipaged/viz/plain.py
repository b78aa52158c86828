"""The facts of one step as plain text: for pipes, logs and readers who do not see pictures."""

from __future__ import annotations

from collections.abc import Iterator

from minipaged.trace import StepRecord
from minipaged.viz.answers import standing
from minipaged.viz.panels import budget_words, queues, shorten_ids
from minipaged.viz.pool import holders
from minipaged.viz.state import Entry, Life, ViewState
from minipaged.viz.words import counted
from minipaged.viz.wrapping import wrap

ROW = 64  # blocks in a line of the pool
WIDTH = 96
LEGEND = """\
A 88/89 +1  0 1 2 3: of A's 89 known tokens 88 are computed, 1 more in this step; then block ids
decode: 1 token, to get the next; 32 of 86 tokens: prompt in chunks; to redo: lost by preemption"""


def plain(record: StepRecord, state: ViewState) -> str:
    """All that the picture shows: the snapshot, the step's events and the answers so far.

    ASCII, but for the questions and answers themselves.
    """
    lines = [snapshot(record, state)]
    lines += [told(entry, state) for entry in state.log if entry.step == record.step]
    for life in state.lives.values():
        lines += answer(life)
    return "\n".join(lines)


def snapshot(record: StepRecord, state: ViewState) -> str:
    """Pool, block tables, queues and token budget of one step."""
    lines = [f"step {record.step}", *_pool(record, state), *_tables(record, state)]
    names = {
        name: " ".join(life.mark.sign for life in lives) or "-"
        for name, lives in queues(record, state).items()
    }
    lines.append("  requests  " + ", ".join(f"{name} {signs}" for name, signs in names.items()))
    budget = state.header.max_num_batched_tokens
    words = budget_words(record, state)
    lines.append(f"  budget    {record.num_tokens} of {counted(budget, 'token')}: {words}")
    return "\n".join(lines)


def told(entry: Entry, state: ViewState) -> str:
    """An event as one line; an arrival tells the question too."""
    life = state.life(entry.request_id)
    question = f": {life.question}" if entry.text.startswith("arrives") else ""
    return f"step {entry.step:>4}  {life.mark.sign} {entry.text}{question}"


def answer(life: Life, width: int = WIDTH) -> list[str]:
    """A question, where it stands, and the whole text so far, indented."""
    lines = [f"{life.mark.sign}  {life.question}  ({standing(life)})"]
    return [*lines, *(f"   {line}" for line in wrap(life.text, min(width, WIDTH) - 3))]


def _pool(record: StepRecord, state: ViewState) -> Iterator[str]:
    """One letter a block; "." for a free one, "+" for a shared one, which is then explained."""
    total = state.header.num_blocks
    yield f"  pool      {record.num_free} of {counted(total, 'block')} free"
    found = holders(record)
    signs = {
        block: "+" if len(who) > 1 else state.life(who[0]).mark.sign for block, who in found.items()
    }
    for first in range(0, total, ROW):
        row = "".join(signs.get(block, ".") for block in range(first, min(first + ROW, total)))
        yield f"    {first:>5}   {row}"
    for block, who in sorted(found.items()):
        if len(who) > 1:
            yield f"    + {block} is shared by {' '.join(state.life(i).mark.sign for i in who)}"


def _tables(record: StepRecord, state: ViewState) -> Iterator[str]:
    title = "  tables    "
    now = {work.request_id: work.num_tokens for work in record.work}
    for request_id, table in record.tables.items():
        computed, known = record.computed.get(request_id, 0), record.known.get(request_id, 0)
        text = f"{state.life(request_id).mark.sign} {computed}/{known} +{now.get(request_id, 0)}"
        yield f"{title}{text:<14} {shorten_ids(table, WIDTH - 27, '...')}"
        title = " " * len(title)
    for request_id, hosts in record.hosts.items():
        sign = state.life(request_id).mark.sign
        yield f"  {f'{sign} on the host':<24} {shorten_ids(hosts, WIDTH - 27, '...')}"
