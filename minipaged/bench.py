"""`minipaged bench scheduler`: what deciding costs, with no model behind it.

Timed are schedule() and commit(), nothing else: adding requests, choosing the stand-in tokens and
reading statistics happen between the stop-watch's marks. `benchmarks/` compares with others.
"""

from __future__ import annotations

import gc
import hashlib
import json
import statistics
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

from minipaged.components import Components
from minipaged.config import EngineConfig
from minipaged.plan import StepPlan, StepResult
from minipaged.request import Request
from minipaged.sched.limits import max_output_tokens
from minipaged.workload import Arrival, SyntheticWorkload


@dataclass(slots=True)
class SchedulerRun:
    """One run. step_list: [tokens scheduled, requests running after schedule()] per step."""

    step_list: list[tuple[int, int]] = field(default_factory=list)
    scheduled_seqs: int = 0
    preemptions: int = 0
    peak_blocks: int = 0
    hit_tokens: int = 0
    seconds: float = 0.0

    def report(self) -> dict[str, int | float | str]:
        """The figures of one run, by name; times in microseconds."""
        tokens = sum(count for count, _ in self.step_list)
        micro = self.seconds * 1e6
        listed = json.dumps([list(step) for step in self.step_list])
        return {
            "steps": len(self.step_list),
            "scheduled_tokens": tokens,
            "preemptions": self.preemptions,
            "peak_blocks": self.peak_blocks,
            "peak_running": max(running for _, running in self.step_list),
            "hit_tokens": self.hit_tokens,
            "steps_hash": hashlib.sha256(listed.encode()).hexdigest()[:16],
            "us_per_step": round(micro / len(self.step_list), 2),
            "us_per_seq": round(micro / self.scheduled_seqs, 3),
            "us_per_token": round(micro / tokens, 4),
        }


def run_scheduler(
    config: EngineConfig, arrivals: Sequence[Arrival], components: Components | None = None
) -> SchedulerRun:
    """Drive a scheduler through a workload; every sampled request gets token 0."""
    parts = Components() if components is None else components
    cache = config.cache
    if cache.num_blocks is None:
        raise ValueError("num_blocks is not set: a scheduler run has no memory to derive it from")
    manager = parts.make_manager(cache)
    scheduler = parts.make_scheduler(config, manager)
    pending = deque(sorted(arrivals, key=lambda a: a.arrival_step))
    run, now = SchedulerRun(), 0
    while pending or scheduler.running or scheduler.waiting:
        if not (scheduler.running or scheduler.waiting):
            now = max(now, pending[0].arrival_step)
        while pending and pending[0].arrival_step <= now:
            scheduler.add(_request(pending.popleft(), manager.num_slots))
        begin = perf_counter()
        plan = scheduler.schedule()
        planned = perf_counter()
        run.step_list.append((plan.num_tokens, len(scheduler.running)))
        run.scheduled_seqs += len(plan.items)
        run.preemptions += len(scheduler.preempted)
        run.peak_blocks = max(run.peak_blocks, manager.num_blocks - manager.pool.num_free)
        result = _stand_in(plan)
        resumed = perf_counter()
        scheduler.commit(plan, result)
        run.seconds += (planned - begin) + (perf_counter() - resumed)
        del plan, result  # or the next schedule() would pay for their memory
        now += 1
    if manager.prefix is not None:
        run.hit_tokens = manager.prefix.stats.hits
    return run


def _request(arrival: Arrival, num_slots: int) -> Request:
    """As the engine would make it, with no limit but the pool's; refused if it can never fit."""
    request_id, prompt, params, *_ = arrival
    limit = max_output_tokens(len(prompt), params.max_tokens, sys.maxsize, num_slots)
    return Request(request_id, prompt, params, max_output_tokens=limit)


def _stand_in(plan: StepPlan) -> StepResult:
    return StepResult({i.request_id: [0] for i in plan.items if i.sample is not None}, 0.0)


def bench_scheduler(
    config: EngineConfig, workload: SyntheticWorkload, repeats: int = 9
) -> dict[str, int | float | str]:
    """The fastest of `repeats` runs after one that does not count, and the median of their times.

    The fastest is what the code costs, the rest is what others do on the machine (as the timeit
    documentation says). The garbage collector rests meanwhile, as in timeit: it would walk through
    all that the command line has loaded.
    """
    reports = []
    for _ in range(repeats + 1):
        arrivals = workload.arrivals()
        gc.collect()
        gc.disable()
        try:
            reports.append(run_scheduler(config, arrivals).report())
        finally:
            gc.enable()
    times = [float(report["us_per_seq"]) for report in reports[1:]]
    fastest = reports[1 + times.index(min(times))]
    return {**fastest, "us_per_seq_median": statistics.median_low(times)}
