"""What a view has to remember from one step record to the next. No torch.

A StepRecord tells one step. Texts, counts and what became of earlier requests follow from all
records before it, and are gathered here; every picture is then a function of (record, state).
"""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from minipaged.request import SAMPLE_MARK
from minipaged.trace import Event, StepRecord, Trace
from minipaged.viz.palette import Mark, Palette
from minipaged.viz.words import counted


@dataclass(slots=True)
class Life:
    """What has become of one request.

    status: waiting, running, preempted, swapped, finished or aborted. reason: why it finished, or
        "".
    num_prompt: tokens of its prompt. num_computed: tokens in the cache after the latest step.
    num_outputs: tokens sampled so far. num_blocks: blocks that it holds.
    """

    request_id: str
    mark: Mark
    question: str
    text: str = ""
    status: str = "waiting"
    reason: str = ""
    num_prompt: int = 0
    num_computed: int = 0
    num_outputs: int = 0
    num_blocks: int = 0
    num_preemptions: int = 0


class Entry(NamedTuple):
    """A line of the log: what happened to a request, as the rest of a sentence."""

    step: int
    request_id: str
    text: str


class ViewState:
    """Everything a view knows after the records that it was given.

    header: the run's sizes. questions: what each request asked, by id; an id stands for a
    question that is not told. lives: in order of arrival. num_dropped: computed tokens that
    preemption threw away. num_swapped_out, num_swapped_in: blocks moved to the host and back.
    num_cached: tokens that the admitted found computed. num_copied: blocks
    copied before they were written; peak_saved: most blocks that sharing saved. seconds: in steps.
    """

    def __init__(self, header: Trace, questions: Mapping[str, str] | None = None) -> None:
        self.header = header
        self.lives: dict[str, Life] = {}
        self.log: list[Entry] = []
        self.num_steps = 0
        self.num_tokens = 0
        self.num_dropped = 0
        self.num_cached = 0
        self.num_copied = 0
        self.num_swapped_out = 0
        self.num_swapped_in = 0
        self.peak_saved = 0
        self.seconds = 0.0
        self.peak_blocks = 0
        self.peak_running = 0
        self._questions = questions or {}
        self._palette = Palette()

    @classmethod
    def at(cls, trace: Trace, index: int, questions: Mapping[str, str] | None = None) -> ViewState:
        """The state after the record at `index` of a trace. Cost: O(records before it)."""
        state = cls(trace, questions)
        for record in trace.steps[: index + 1]:
            state.update(record)
        return state

    def update(self, record: StepRecord) -> None:
        """Take in the next record. Cost: O(requests in it)."""
        for event in record.events:
            self._happened(event, record)
        for work in record.work:
            life = self.life(work.request_id)
            life.num_computed = work.start_position + work.num_tokens
            life.num_outputs += len(work.sampled)
        for request_id, text in record.texts.items():
            self.life(request_id).text += printable(text)
        self._look_at_tables(record)
        self.num_steps += 1
        self.num_tokens += record.num_tokens
        self.seconds += record.elapsed
        self.peak_blocks = max(self.peak_blocks, self.header.num_blocks - record.num_free)
        self.peak_running = max(self.peak_running, len(record.tables))
        self.num_copied += len(record.copies)
        self.num_swapped_out += len(record.swap_out)
        self.num_swapped_in += len(record.swap_in)
        held = self.header.num_blocks - record.num_free
        self.peak_saved = max(self.peak_saved, sum(map(len, record.tables.values())) - held)

    def life(self, request_id: str) -> Life:
        """The life of a request, begun if it was unknown."""
        life = self.lives.get(request_id)
        if life is None:
            question = printable(self._questions.get(request_id, request_id))
            life = Life(request_id, self._palette[request_id], question)
            self.lives[request_id] = life
        return life

    def with_status(self, *statuses: str) -> list[Life]:
        """The lives that are in one of these states, in order of arrival."""
        return [life for life in self.lives.values() if life.status in statuses]

    @property
    def num_preemptions(self) -> int:
        """Preemptions so far, over all requests."""
        return sum(life.num_preemptions for life in self.lives.values())

    def _look_at_tables(self, record: StepRecord) -> None:
        """Learn of requests that came before the trace began; count the blocks of all."""
        for request_id in (*record.tables, *record.waiting):
            life = self.life(request_id)
            if request_id in record.tables and life.status == "waiting":
                life.status = "running"
        for life in self.lives.values():
            held = record.tables.get(life.request_id, ())
            life.num_blocks = len(held) if life.status == "running" else 0

    def _happened(self, event: Event, record: StepRecord) -> None:
        life = self.life(event.request_id)
        if not life.num_prompt:
            life.num_prompt = record.known.get(life.request_id, 0)
        said = _sentence(event, life, record)
        if event.kind == "forked":
            said = f"branches off {self.life(event.detail).mark.sign}"
        self.log.append(Entry(record.step, life.request_id, said))
        if event.kind == "forked":
            parent = self.life(event.detail)
            life.num_prompt = life.num_prompt or parent.num_prompt
            life.question = f"{parent.question} (branch)"
            if event.request_id not in record.waiting:
                life.num_computed = parent.num_computed
            life.num_outputs = int(SAMPLE_MARK in life.request_id)  # its first came with the branch
        if event.kind == "admitted" and life.status != "swapped":
            self.num_cached += sum(
                work.start_position for work in record.work if work.request_id == life.request_id
            )
        if event.kind == "preempted":
            # told again if its way to the host was not carried out
            life.num_preemptions += life.status != "swapped"
            life.num_blocks = 0
            if not _is_swap(event):
                self.num_dropped += life.num_computed
                life.num_computed = 0
        life.status = "swapped" if _is_swap(event) else _STATUS[event.kind]
        if event.kind == "forked" and event.request_id in record.waiting:
            life.status = "waiting"
        life.reason = "" if event.kind == "forked" else event.detail


def _is_swap(event: Event) -> bool:
    return event.kind == "preempted" and event.detail == "swapped"


_STATUS = {
    "added": "waiting",
    "admitted": "running",
    "forked": "running",
    "preempted": "preempted",
    "finished": "finished",
    "aborted": "aborted",
}


def _sentence(event: Event, life: Life, record: StepRecord) -> str:
    """The event as the rest of a sentence that begins with the request's letter."""
    known = record.known.get(life.request_id, 0)
    now = [work for work in record.work if work.request_id == life.request_id]
    if event.kind == "added":
        return f"arrives, {counted(known, 'token')}" if known else "arrives"
    if event.kind == "admitted" and life.status == "swapped":
        return f"returns, {counted(record.computed.get(life.request_id, 0), 'token')} brought back"
    if event.kind == "admitted" and life.num_preemptions:
        return f"returns, {counted(known, 'token')} to redo"
    if event.kind == "admitted":
        cached = now[0].start_position if now else 0
        found = f", {cached} from the cache" if cached else ""
        return f"is admitted, {sum(w.num_tokens for w in now)} of {counted(known, 'token')}{found}"
    if event.kind == "preempted":
        # in a step that failed it may have got its first blocks: no record tells of those
        freed = f", frees {counted(life.num_blocks, 'block')}" if life.num_blocks else ""
        if life.status == "swapped":
            return "loses what was to go to the host"
        return f"is {'swapped out' if _is_swap(event) else 'preempted'}{freed}"
    if event.kind == "aborted":
        return "is aborted"
    made = life.num_outputs + sum(len(w.sampled) for w in now)
    how = "hits its limit" if event.detail == "length" else "is done"
    return f"{how}, {counted(made, 'token')}"


def at_rest(record: StepRecord, num_free: int) -> StepRecord:
    """The moment after the last record of a run: nothing scheduled, nothing held."""
    return dataclasses.replace(
        record,
        work=[],
        tables={},
        waiting=[],
        events=[],
        texts={},
        copies=[],
        swap_out=[],
        swap_in=[],
        hosts={},
        num_free=num_free,
    )


def printable(text: str) -> str:
    """The text without control characters, which could take over a terminal; newlines stay."""
    return "".join(
        c if c == "\n" or unicodedata.category(c) not in ("Cc", "Cs") else "\ufffd" for c in text
    )
