"""Random workloads for the fuzzer: small pools, small budgets, short requests, shared beginnings.

Drawn so that every limit, every kind of sharing and every end of a request is met often.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, NamedTuple

from minipaged.config import SCHEDULERS, VICTIMS, DeviceCosts, EngineConfig, SamplingParams
from minipaged.workload import Arrival


class Fork(NamedTuple):
    """Before step `step`, `new_id` branches off `parent`, if that is live."""

    step: int
    parent: str
    new_id: str


@dataclass(slots=True)
class FuzzWorkload:
    """One drawn workload. aborts: (step, id, in flight: while the step is being executed)."""

    config: EngineConfig
    vocab_size: int
    arrivals: list[Arrival]
    aborts: list[tuple[int, str, bool]]
    forks: list[Fork]


def draw_workload(rng: random.Random) -> FuzzWorkload:
    """The workload that this generator's state stands for."""
    config = _config(rng)
    vocab_size = rng.choice((4, 64, 256))
    count = rng.randint(1, 12)
    spread = rng.choice((0, 3, 20))
    stems = [_tokens(rng, vocab_size, 24) for _ in range(2)]
    most = config.scheduler.max_num_seqs
    arrivals = [
        Arrival(
            f"r{i}",
            _prompt(rng, vocab_size, stems),
            _params(rng, vocab_size, most),
            rng.randint(0, spread),
            rng.choice(("", "", "salt")),
            rng.choice((0, 0, 1, 2)),
        )
        for i in range(count)
    ]
    aborts = [
        (rng.randint(0, 40), f"r{rng.randrange(count + 1)}", rng.random() < 0.5)
        for _ in range(rng.choice((0, 0, 1, 2, 5)))
    ]
    forks = [
        Fork(rng.randint(0, 30), f"r{rng.randrange(count)}", f"f{i}")
        for i in range(rng.choice((0, 0, 1, 3)))
    ]
    return FuzzWorkload(config, vocab_size, arrivals, aborts, forks)


def _config(rng: random.Random) -> EngineConfig:
    block_size = rng.choice((1, 2, 3, 4, 8, 16))
    scheduler = rng.choice(("unified",) * 5 + SCHEDULERS[1:])
    caching = rng.choice(("off", "hash", "radix"))
    return EngineConfig.of(
        block_size=block_size,
        num_blocks=-(-rng.choice((rng.randint(4, 40), rng.randint(40, 120))) // block_size),
        max_num_seqs=rng.randint(1, 8),
        max_num_batched_tokens=rng.choice((1, 3, 5, 8, 16, 32, 64)),
        max_model_len=rng.choice((rng.randint(4, 40), 120)),
        watermark_blocks=rng.choice((0, 0, 0, 1, 3)),
        admission_headroom=rng.choice((0, 0, 1, 2)),
        seed=rng.randrange(100),
        enable_prefix_caching="off" if scheduler in ("static", "orca") else caching,
        scheduler=scheduler,
        order=rng.choice(("fcfs", "fcfs", "lpm", "priority")),
        **_pressure(rng),
    )


def _pressure(rng: random.Random) -> dict[str, Any]:
    """Gates of admission, and what becomes of whom when memory is out."""
    low = rng.choice((0, 0, 0, rng.randint(1, 4)))
    num_host_blocks = rng.choice((0, 0, rng.randint(1, 6), 200))
    return {
        "admission": rng.choice(("full", "full", "chunk")),
        "low_water_blocks": low,
        "high_water_blocks": rng.choice((0, 0, low + rng.randint(0, 3))),
        "backoff_steps": rng.choice((0, 0, 1, 3)),
        "victim": rng.choice((None, None, *VICTIMS)),
        "num_host_blocks": num_host_blocks,
        "preemption": rng.choice(("swap", "auto") if num_host_blocks else ("recompute",)),
        "max_preemptions": rng.choice((None, None, 0, 1, 2)),
        # on this device swapping a few tokens costs less than computing them, many more than few
        "costs": DeviceCosts(kv_bytes_per_token=rng.choice((1, 1e6, 1e9))),
    }


def _tokens(rng: random.Random, vocab_size: int, count: int) -> list[int]:
    return [rng.randrange(vocab_size) for _ in range(count)]


def _prompt(rng: random.Random, vocab_size: int, stems: list[list[int]]) -> list[int]:
    """Tokens of its own, or the beginning of a stem and a few of its own."""
    if rng.random() < 0.5:
        stem = rng.choice(stems)[: rng.randint(1, 24)]
        return stem + _tokens(rng, vocab_size, rng.randint(0, 6))
    length = rng.choice(
        (1, rng.randint(1, 12), rng.randint(1, 12), rng.randint(1, 30), rng.randint(1, 90))
    )
    return _tokens(rng, vocab_size, length)


def _params(rng: random.Random, vocab_size: int, max_num_seqs: int) -> SamplingParams:
    max_tokens = rng.choice((1, rng.randint(1, 10), rng.randint(10, 60), rng.randint(10, 60)))
    return SamplingParams(
        n=rng.choice((1, 1, rng.randint(1, min(4, max_num_seqs)))),
        temperature=rng.choice((0.0, 1.0)),
        max_tokens=max_tokens,
        min_tokens=rng.choice((0, 0, rng.randint(0, max_tokens))),
        stop_token_ids=rng.choice(((), (rng.randrange(vocab_size),))),
        ignore_eos=rng.random() < 0.3,
        seed=rng.choice((None, rng.randrange(10))),
    )
