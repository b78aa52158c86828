"""What one run of `minipaged compare` is measured by: a tally kept while it runs, and its row.

Memory is measured over time, each step with the seconds that it took. A slot that some request
holds is used (it has a token in it), held for later (it will have one), or held for never; a free
one is lost outside if it lies in a piece too small for the request that is next. The four together
are what is taken from others; lesson 01 has the terms.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from minipaged.cache.contiguous import ContiguousBlockPool
from minipaged.engine import Engine
from minipaged.metrics import percentile
from minipaged.output import RequestOutput
from minipaged.plan import StepPlan, StepResult
from minipaged.sched.static import StaticBatching


class Spread(NamedTuple):
    """Mean and 99th percentile of a latency in seconds, over requests."""

    mean: float
    p99: float


@dataclass(slots=True)
class Row:
    """One scheduler on one workload.

    seconds: on the clock of the cost model. num_outputs: tokens written. peak_running: most
    requests at once. idle_places: place-steps (of max_num_seqs) in which nothing was computed;
    useful: the share of the others. padding_tokens: counted, not computed.
    memory: shares of the slots taken, over time: "used", "later", "never", "outside".
    ttft, tpot, gap: time to the first token, per further token, and the longest wait between two
    tokens of a request; None if no request has one.
    idle: for a static batch, request -> (steps its place idled, steps of its batch).
    """

    name: str
    steps: int
    seconds: float
    num_outputs: int
    peak_running: int
    idle_places: int
    useful: float
    padding_tokens: int
    memory: dict[str, float]
    ttft: Spread | None
    tpot: Spread | None
    gap: Spread | None
    preemptions: int
    recomputed_tokens: int
    swapped_tokens: int
    hit_tokens: int
    idle: dict[str, tuple[int, int]]

    def as_data(self) -> dict[str, Any]:
        """All fields for JSON: a latency as {"mean": ..., "p99": ...} or null."""
        data = asdict(self)
        for name in ("ttft", "tpot", "gap"):
            spread: Spread | None = getattr(self, name)
            data[name] = None if spread is None else spread._asdict()
        return data


class Hold(NamedTuple):
    """For `seconds`, a request held `held` slots and used `used` of them."""

    seconds: float
    used: int
    held: int


@dataclass
class Tally:
    """An observer: counts what no metric of the engine counts. Cost per step: O(running).

    outside: slot-seconds lost in pieces too small. shared: slot-seconds that several tables count.
    worst_gaps: of each request that wrote two tokens or more.
    """

    steps: int = 0
    busy_places: int = 0
    peak_running: int = 0
    outside: float = 0.0
    shared: float = 0.0
    worst_gaps: list[float] = field(default_factory=list)
    idle: dict[str, tuple[int, int]] = field(default_factory=dict)
    _holds: dict[str, list[Hold]] = field(default_factory=dict)
    _batch: Counter[str] = field(default_factory=Counter)
    _batch_steps: int = 0
    _now: list[tuple[str, int, int]] = field(default_factory=list)
    _now_shared: int = 0
    _now_outside: int = 0

    def event(self, kind: str, request_id: str, detail: str = "") -> None:
        """Nothing: what matters stands in the plans."""

    def planned(self, engine: Engine, plan: StepPlan) -> None:
        """Count the plan's work; how long it holds its memory is known once it has run."""
        self.steps += 1
        self.busy_places += len(plan.items)
        self.peak_running = max(self.peak_running, len(engine.scheduler.running))
        if isinstance(engine.scheduler, StaticBatching):
            self._count_batch([request.request_id for request in engine.scheduler.running])
        size, manager = engine.manager.block_size, engine.manager
        self._now = [
            (name, r.num_computed_tokens + r.num_inflight_tokens, r.num_blocks * size)
            for name, r in manager.requests.items()
        ]
        self._now_shared = manager.num_saved_blocks * size
        self._now_outside = _outside(engine) * size

    def committed(
        self, engine: Engine, plan: StepPlan, result: StepResult, outputs: list[RequestOutput]
    ) -> None:
        """The step has taken its time."""
        for name, used, held in self._now:
            self._holds.setdefault(name, []).append(Hold(result.elapsed, used, held))
        self.shared += self._now_shared * result.elapsed
        self.outside += self._now_outside * result.elapsed
        for output in outputs:
            if output.times is not None and output.times.num_outputs > 1:
                self.worst_gaps.append(output.times.worst_gap)

    def row(self, name: str, engine: Engine) -> Row:
        """All of it, once every request has ended."""
        self._close_batch()
        scheduler = engine.scheduler
        padding = scheduler.num_padding_tokens if isinstance(scheduler, StaticBatching) else 0
        moves = engine.metrics.num_swapped_out_blocks_total
        moves += engine.metrics.num_swapped_in_blocks_total
        metrics, places = engine.metrics, self.steps * engine.config.scheduler.max_num_seqs
        return Row(
            name=name,
            steps=self.steps,
            seconds=engine.clock.now(),
            num_outputs=metrics.generation_tokens_total,
            peak_running=self.peak_running,
            idle_places=places - self.busy_places,
            useful=self.busy_places / places,
            padding_tokens=padding,
            memory=self._memory(),
            ttft=_spread(metrics.time_to_first_token_seconds),
            tpot=_spread(metrics.time_per_output_token_seconds),
            gap=_spread(self.worst_gaps),
            preemptions=metrics.num_preemptions_total,
            recomputed_tokens=metrics.num_recomputed_tokens_total,
            swapped_tokens=moves * engine.manager.block_size,
            hit_tokens=metrics.prefix_cache_hits_total,
            idle=self.idle,
        )

    def _memory(self) -> dict[str, float]:
        """Shares of the slot-seconds taken. What a request never uses is known at its end only."""
        kinds = {"used": -self.shared, "later": 0.0, "never": 0.0, "outside": self.outside}
        for holds in self._holds.values():
            final = max(hold.used for hold in holds)
            for seconds, used, held in holds:
                wanted = min(held, final)
                kinds["used"] += used * seconds
                kinds["later"] += (wanted - used) * seconds
                kinds["never"] += (held - wanted) * seconds
        taken = sum(kinds.values())
        return {kind: value / taken for kind, value in kinds.items()}

    def _count_batch(self, running: list[str]) -> None:
        """A batch lasts as long as one of those that began it."""
        if not self._batch.keys() & set(running):
            self._close_batch()
            self._batch, self._batch_steps = Counter(), 0
        self._batch_steps += 1
        self._batch.update(running)

    def _close_batch(self) -> None:
        for request_id, steps in self._batch.items():
            self.idle[request_id] = (self._batch_steps - steps, self._batch_steps)


def _outside(engine: Engine) -> int:
    """Free blocks, if the next request lacks nothing but that they lie together; else 0.

    A static batch is formed in an empty pool, and whoever waits for its end waits for no block.
    """
    pool, scheduler, limit = engine.manager.pool, engine.scheduler, engine.config.scheduler
    is_batch = isinstance(scheduler, StaticBatching)
    if is_batch or not isinstance(pool, ContiguousBlockPool) or not scheduler.waiting:
        return 0
    if len(scheduler.running) >= limit.max_num_seqs:
        return 0
    needed = engine.manager.blocks_for(scheduler.waiting[0].max_num_tokens - 1)
    return pool.num_free if pool.longest_run < needed <= pool.num_free else 0


def _spread(values: list[float]) -> Spread | None:
    return Spread(sum(values) / len(values), percentile(values, 99)) if values else None
