"""Workloads: who asks what, and when."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from minipaged.config import SamplingParams
from minipaged.engine import Engine
from minipaged.output import RequestOutput
from minipaged.require import require_int, require_real


class Arrival(NamedTuple):
    """One request of a workload. arrival_step: the step before which it arrives.

    cache_salt: only requests with the same one share cached blocks. priority: the smaller, the
    more urgent.
    """

    request_id: str
    prompt_token_ids: list[int]
    params: SamplingParams
    arrival_step: int
    cache_salt: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class SyntheticWorkload:
    """Random prompts and output lengths, the same for the same seed.

    prompt_len, output_len: inclusive ranges in tokens. arrival_rate: mean arrivals per step
        (a Poisson process); 0 lets everything arrive at step 0.
    vocabulary: token ids are drawn from this half-open range.
    shared_prefix: tokens that every prompt begins with, before those of its own.
    """

    requests: int = 256
    prompt_len: tuple[int, int] = (16, 256)
    output_len: tuple[int, int] = (8, 128)
    arrival_rate: float = 0.0
    seed: int = 0
    vocabulary: tuple[int, int] = (100, 49_000)
    shared_prefix: int = 0

    def __post_init__(self) -> None:
        require_int("requests", self.requests, 1, "more would fill the memory", 10**6)
        for name in ("prompt_len", "output_len"):
            low, high = getattr(self, name)
            require_int(f"{name} LO", low, 1, "a request has at least one token")
            require_int(f"{name} HI", high, low, "HI may not be below LO")
        require_real("arrival_rate", self.arrival_rate, 0.0, "0 lets all arrive at once")
        require_int("seed", self.seed, 0, "any non-negative integer will do")
        require_int("shared_prefix", self.shared_prefix, 0, "0 lets every prompt begin by itself")

    def arrivals(self) -> list[Arrival]:
        """The requests in order of arrival. Outputs run to their drawn length (no EOS)."""
        draw, clock = random.Random(self.seed), random.Random(f"arrival{self.seed}")
        begin = random.Random(f"prefix{self.seed}")
        prefix = [begin.randrange(*self.vocabulary) for _ in range(self.shared_prefix)]
        when, result = 0.0, []
        for number in range(self.requests):
            prompt = [
                draw.randrange(*self.vocabulary) for _ in range(draw.randint(*self.prompt_len))
            ]
            params = SamplingParams(max_tokens=draw.randint(*self.output_len), ignore_eos=True)
            if self.arrival_rate:
                when += clock.expovariate(self.arrival_rate)
            result.append(Arrival(str(number), prefix + prompt, params, int(when)))
        return result


def replay(
    engine: Engine,
    arrivals: Sequence[Arrival],
    before_step: Callable[[int], None] | None = None,
) -> Iterator[list[RequestOutput]]:
    """Feed a workload to an engine, one step's outputs at a time.

    An idle engine jumps to the next arrival. before_step(n) is called before step n, after its
    arrivals were added: a place for aborts.
    """
    pending = deque(sorted(arrivals, key=lambda a: a.arrival_step))
    now = 0
    while pending or engine.has_unfinished_requests():
        if not engine.has_unfinished_requests():
            now = max(now, pending[0].arrival_step)
        while pending and pending[0].arrival_step <= now:
            arrival = pending.popleft()
            engine.add_request(
                arrival.request_id,
                arrival.prompt_token_ids,
                arrival.params,
                cache_salt=arrival.cache_salt,
                priority=arrival.priority,
            )
        if before_step is not None:
            before_step(now)
        if engine.has_unfinished_requests():
            yield engine.step()
        now += 1
