"""What a serving engine is watched by: counters, gauges and per-request times.

Names follow vLLM's metrics (vllm/v1/metrics/loggers.py) with the prefix `minipaged:`. Times are in
seconds on the engine's clock, so a simulated run has simulated latencies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from minipaged.plan import StepPlan

if TYPE_CHECKING:
    from minipaged.cache.manager import KVManager


@dataclass(slots=True)
class RequestTimes:
    """The life of one request, in seconds on the engine's clock; None until it happened."""

    arrival: float
    first_scheduled: float | None = None
    first_token: float | None = None
    last_token: float | None = None
    worst_gap: float = 0.0
    num_outputs: int = 0

    def scheduled(self, now: float) -> None:
        """The request is part of a step; only the first time counts."""
        if self.first_scheduled is None:
            self.first_scheduled = now

    def produced(self, count: int, now: float) -> None:
        """`count` output tokens became visible."""
        if self.first_token is None:
            self.first_token = now
        elif self.last_token is not None:
            self.worst_gap = max(self.worst_gap, now - self.last_token)
        self.last_token = now
        self.num_outputs += count

    @property
    def time_to_first_token(self) -> float | None:
        """Arrival to first output (TTFT)."""
        return None if self.first_token is None else self.first_token - self.arrival

    @property
    def time_per_output_token(self) -> float | None:
        """Mean gap between outputs after the first (TPOT)."""
        if self.first_token is None or self.last_token is None or self.num_outputs < 2:
            return None
        return (self.last_token - self.first_token) / (self.num_outputs - 1)

    @property
    def queue_time(self) -> float | None:
        """Arrival to first admission."""
        return None if self.first_scheduled is None else self.first_scheduled - self.arrival

    @property
    def e2e_latency(self) -> float | None:
        """Arrival to last output."""
        return None if self.last_token is None else self.last_token - self.arrival


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` % of the values do not exceed (nearest rank).

    ValueError for no values or a percentage outside 0…100.
    """
    if not values:
        raise ValueError("no values: a percentile needs at least one")
    if not 0 <= percent <= 100:
        raise ValueError(f"percent is {percent}: give a number from 0 to 100")
    rank = max(1, math.ceil(percent / 100 * len(values)))
    return sorted(values)[rank - 1]


@dataclass(slots=True)
class Metrics:
    """Counters (…_total), gauges of the latest step, and one list of samples a latency.

    num_copied_blocks_total: copy-on-write. num_swapped_out_blocks_total and _in_: to the host and
        back. num_recomputed_tokens_total: computed once more, as a preemption had dropped them.
    peak_saved_blocks: most blocks that sharing ever saved.
    prefix_cache_queries_total and _hits_total: in tokens, of admitted requests.
    prefix_cache_block_lifetime_steps: steps from becoming known to being handed out again.
    """

    num_requests_running: int = 0
    num_requests_waiting: int = 0
    kv_cache_usage_perc: float = 0.0
    peak_blocks: int = 0
    steps_total: int = 0
    scheduled_tokens_total: int = 0
    prompt_tokens_total: int = 0
    generation_tokens_total: int = 0
    num_preemptions_total: int = 0
    num_recomputed_tokens_total: int = 0
    num_swapped_out_blocks_total: int = 0
    num_swapped_in_blocks_total: int = 0
    num_copied_blocks_total: int = 0
    peak_saved_blocks: int = 0
    prefix_cache_queries_total: int = 0
    prefix_cache_hits_total: int = 0
    prefix_cache_evictions_total: int = 0
    request_success_total: dict[str, int] = field(default_factory=dict)
    time_to_first_token_seconds: list[float] = field(default_factory=list)
    time_per_output_token_seconds: list[float] = field(default_factory=list)
    request_queue_time_seconds: list[float] = field(default_factory=list)
    e2e_request_latency_seconds: list[float] = field(default_factory=list)
    prefix_cache_block_lifetime_steps: list[int] = field(default_factory=list)

    def planned(self, plan: StepPlan, running: int, waiting: int, manager: KVManager) -> None:
        """Gauges as they stand while the step runs, and what the cache has counted. O(1)."""
        used = manager.num_blocks - manager.pool.num_free
        self.num_requests_running, self.num_requests_waiting = running, waiting
        self.kv_cache_usage_perc = used / manager.num_blocks
        self.peak_blocks = max(self.peak_blocks, used)
        self.peak_saved_blocks = max(self.peak_saved_blocks, manager.num_saved_blocks)
        self.num_copied_blocks_total += len(plan.copies)
        if manager.prefix is not None:
            stats = manager.prefix.stats
            self.prefix_cache_queries_total = stats.queries
            self.prefix_cache_hits_total = stats.hits
            self.prefix_cache_evictions_total = stats.evictions
            self.prefix_cache_block_lifetime_steps = stats.lifetimes
        self.steps_total += 1
        self.scheduled_tokens_total += plan.num_tokens

    def carried_out(self, plan: StepPlan, num_recomputed_tokens: int) -> None:
        """Count what a plan has moved and computed once more. O(1)."""
        self.num_recomputed_tokens_total += num_recomputed_tokens
        self.num_swapped_out_blocks_total += len(plan.swap_out)
        self.num_swapped_in_blocks_total += len(plan.swap_in)

    def finished(self, reason: str, num_prompt_tokens: int, times: RequestTimes) -> None:
        """Count a request that ended and take over its times."""
        self.request_success_total[reason] = self.request_success_total.get(reason, 0) + 1
        self.prompt_tokens_total += num_prompt_tokens
        self.generation_tokens_total += times.num_outputs
        for samples, value in (
            (self.time_to_first_token_seconds, times.time_to_first_token),
            (self.time_per_output_token_seconds, times.time_per_output_token),
            (self.request_queue_time_seconds, times.queue_time),
            (self.e2e_request_latency_seconds, times.e2e_latency),
        ):
            if value is not None:
                samples.append(value)

    def snapshot(self) -> dict[str, float]:
        """One number per name: counters and gauges as they are, latencies as count, mean, p50
        and p99."""
        values: dict[str, float] = {}
        for name in self.__slots__:
            value = getattr(self, name)
            if isinstance(value, dict):
                for reason, count in value.items():
                    values[f'minipaged:{name}{{finished_reason="{reason}"}}'] = count
            elif isinstance(value, list):
                values[f"minipaged:{name}_count"] = len(value)
                if value:
                    values[f"minipaged:{name}_mean"] = sum(value) / len(value)
                    values[f"minipaged:{name}_p50"] = percentile(value, 50)
                    values[f"minipaged:{name}_p99"] = percentile(value, 99)
            else:
                values[f"minipaged:{name}"] = value
        return values
