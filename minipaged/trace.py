"""The record of a run, one entry a step: what every picture and explanation is drawn from.

As a file: JSON lines. The first line is the header (block_size, num_blocks,
max_num_batched_tokens, max_num_seqs); every further line is one StepRecord.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from minipaged.plan import StepPlan, StepResult
from minipaged.request import sample_id

if TYPE_CHECKING:
    from minipaged.engine import Engine
    from minipaged.output import RequestOutput


class Work(NamedTuple):
    """One request's share of a step; sampled: the tokens that came out of it."""

    request_id: str
    start_position: int
    num_tokens: int
    sampled: list[int]


class Event(NamedTuple):
    """kind: added, admitted, forked, preempted, finished or aborted.

    detail: a finish reason, the request that was branched off, "swapped" for a request that was
    preempted by moving it to the host, or "".
    """

    kind: str
    request_id: str
    detail: str


@dataclass(slots=True)
class StepRecord:
    """The engine while one step ran, and what came of it.

    time: seconds on the engine's clock at the step's end. elapsed: seconds that it took.
    tables: block ids of every running request. computed: tokens of each whose keys and values
        were in the cache before the step. known: tokens known of each request.
    waiting: ids, the next to be admitted first. copies, swap_out, swap_in: (source, target) of
        each block moved. hosts: host blocks of every request that is swapped out.
    texts: text that became certain in this step.
    """

    step: int
    time: float
    elapsed: float
    work: list[Work]
    tables: dict[str, list[int]]
    computed: dict[str, int]
    known: dict[str, int]
    waiting: list[str]
    num_free: int
    copies: list[tuple[int, int]] = field(default_factory=list)
    swap_out: list[tuple[int, int]] = field(default_factory=list)
    swap_in: list[tuple[int, int]] = field(default_factory=list)
    hosts: dict[str, list[int]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    @property
    def num_tokens(self) -> int:
        """Tokens computed in this step."""
        return sum(work.num_tokens for work in self.work)


@dataclass(slots=True)
class Trace:
    """A header and the steps of one run."""

    block_size: int
    num_blocks: int
    max_num_batched_tokens: int
    max_num_seqs: int
    steps: list[StepRecord] = field(default_factory=list)

    def save(self, path: Path) -> None:
        """Write as JSON lines."""
        header = {n: getattr(self, n) for n in self.__slots__ if n != "steps"}
        lines = [header, *(dataclasses.asdict(step) for step in self.steps)]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        path.write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Trace:
        """Read what `save` wrote; ValueError names the line that is not a step."""
        # not splitlines: a text may hold U+2028 and the like, which JSON leaves as they are
        lines = [line for line in path.read_text(encoding="utf-8").split("\n") if line]
        trace: Trace | None = None
        for number, line in enumerate(lines, 1):
            try:
                data = json.loads(line)
                if trace is None:
                    trace = cls(**data)
                else:
                    trace.steps.append(_record(data))
            except (ValueError, TypeError) as error:
                raise ValueError(f"{path}, line {number} is not part of a trace: {error}") from None
        if trace is None:
            raise ValueError(f"{path} is empty: a trace begins with a header line")
        return trace


def _record(data: dict[str, Any]) -> StepRecord:
    record = StepRecord(**data)
    record.work = [Work(*work) for work in record.work]
    record.events = [Event(*event) for event in record.events]
    for name in ("copies", "swap_out", "swap_in"):
        setattr(record, name, [(source, target) for source, target in getattr(record, name)])
    return record


class Recorder:
    """Writes an engine's trace while it runs: engine.observers.append(Recorder(engine)).

    Cost per step: O(blocks held + requests). Attach it to watch, not to measure.
    """

    def __init__(self, engine: Engine) -> None:
        config = engine.config
        self.trace = Trace(
            engine.manager.block_size,
            engine.manager.num_blocks,
            config.scheduler.max_num_batched_tokens,
            config.scheduler.max_num_seqs,
        )
        self._events: list[Event] = []
        self._running: set[str] = set()
        self._tables = engine.manager.tables
        self._open: StepRecord | None = None

    def event(self, kind: str, request_id: str, detail: str = "") -> None:
        """Something happened between two steps, or in the one that is open."""
        self._events.append(Event(kind, request_id, detail))
        if kind == "preempted":
            self._running.discard(request_id)
        elif kind == "forked" and request_id in self._tables:
            self._running.add(request_id)  # it runs beside its parent without being admitted

    def planned(self, engine: Engine, plan: StepPlan) -> None:
        """A plan was made; tables are shown as this step uses them."""
        tables = {i: list(t.block_ids) for i, t in engine.manager.tables.items()}
        for item in plan.items:
            if item.request_id not in self._running:
                self.event("admitted", item.request_id)
        self._running = set(tables)
        live = [*engine.scheduler.running, *engine.scheduler.waiting]
        self._open = StepRecord(
            step=plan.step,
            time=0.0,
            elapsed=0.0,
            work=[],
            tables=tables,
            computed={r.request_id: r.num_computed_tokens for r in live},
            known={r.request_id: r.num_tokens for r in live},
            waiting=[r.request_id for r in engine.scheduler.waiting],
            num_free=engine.manager.pool.num_free,
            copies=[(move.source, move.target) for move in plan.copies],
            swap_out=[(move.source, move.target) for move in plan.swap_out],
            swap_in=[(move.source, move.target) for move in plan.swap_in],
        )
        if engine.manager.swap is not None:
            hosts = engine.manager.swap.tables
            self._open.hosts = {i: list(blocks) for i, blocks in hosts.items()}

    def committed(
        self, engine: Engine, plan: StepPlan, result: StepResult, outputs: Iterable[RequestOutput]
    ) -> None:
        """The step is over."""
        record, self._open = self._open, None
        if record is None:
            raise RuntimeError("a step ended that was never planned")
        record.time, record.elapsed = engine.clock.now(), result.elapsed
        for item in plan.items:
            tokens = result.token_ids.get(item.request_id, [])
            record.work.append(
                Work(item.request_id, item.start_position, len(item.token_ids), list(tokens))
            )
        record.texts = {
            sample_id(o.request_id, o.sample_index): o.new_text for o in outputs if o.new_text
        }
        record.events, self._events = self._events, []
        self.trace.steps.append(record)
