"""`minipaged compare`: every scheduler on the same requests, without a model. No torch.

The engine, its schedulers and its memory are the ones that serve. In place of a model stands the
cost model of exec/sim_exec.py, and time is its time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from minipaged.cache.contiguous import ContiguousBlockPool
from minipaged.clock import VirtualClock
from minipaged.compare_rows import Row, Tally
from minipaged.compare_workloads import EOS, Asked
from minipaged.components import Components
from minipaged.config import EngineConfig
from minipaged.engine import Engine
from minipaged.exec.sim_exec import SimConfig, SimExecutor
from minipaged.plan import SampleSpec

MAX_STEPS = 200_000
HOST_BLOCKS = 2**14
_UNPAGED = replace(Components(), block_pool=ContiguousBlockPool)


@dataclass(frozen=True)
class Option:
    """One row to be compared. help: when to choose it. options: of EngineConfig.of."""

    help: str
    options: Mapping[str, Any]
    components: Components = field(default_factory=Components)


OPTIONS: dict[str, Option] = {
    "static": Option(
        "for a batch of equally long answers, offline; one stretch of memory a request",
        {"scheduler": "static"},
        _UNPAGED,
    ),
    "orca": Option(
        "where attention cannot read scattered blocks; one stretch of memory a request",
        {"scheduler": "orca"},
        _UNPAGED,
    ),
    "prefill-first": Option(
        "to see the stall: while a prompt is computed, nobody else writes",
        {"scheduler": "prefill-first"},
    ),
    "unified": Option("to serve: prompts are cut to fit beside the next tokens of all others", {}),
    "unified + hash": Option(
        "to serve prompts that begin alike", {"enable_prefix_caching": "hash"}
    ),
    "unified + radix": Option(
        "the same, with a tree in place of hashes", {"enable_prefix_caching": "radix"}
    ),
    "unified + swap": Option(
        "if memory is short and contexts are long: victims wait on the host",
        {"preemption": "swap", "num_host_blocks": HOST_BLOCKS},
    ),
    "unified + auto": Option(
        "if memory is short: for each victim what costs less, the host or computing again",
        {"preemption": "auto", "num_host_blocks": HOST_BLOCKS},
    ),
    "chunk": Option(
        "to see thrash: admitted as soon as the first chunk fits", {"admission": "chunk"}
    ),
    "chunk + headroom": Option(
        "two blocks must be left over", {"admission": "chunk", "admission_headroom": 2}
    ),
    "chunk + marks": Option(
        "nobody enters with fewer than four blocks free",
        {"admission": "chunk", "high_water_blocks": 4},
    ),
    "chunk + back-off": Option(
        "a victim stays out for four steps, then eight, then sixteen",
        {"admission": "chunk", "backoff_steps": 4},
    ),
}


def compare(
    asked: Sequence[Asked], options: Mapping[str, Any], only: Collection[str] = ()
) -> list[Row]:
    """Serve the same requests with each of OPTIONS, or with those named in `only`.

    options: of EngineConfig.of, for all rows. Where they are left out, num_blocks is room for all
    requests at once and max_model_len the longest that is allowed. ValueError for a name that does
    not exist, or a request that can never be served. Cost: O(running) per step, O(num_blocks) more
    for a pool without pages.
    """
    for name in only:
        if name not in OPTIONS:
            raise ValueError(f"there is no row {name!r}: choose from {', '.join(OPTIONS)}")
    given = {key: value for key, value in options.items() if value is not None}
    chosen = [name for name in OPTIONS if not only or name in only]
    return [_run(name, asked, given) for name in chosen]


def _run(name: str, asked: Sequence[Asked], given: Mapping[str, Any]) -> Row:
    option, tally = OPTIONS[name], Tally()
    config = _config(asked, {**given, **option.options})
    lengths = {one.request_id: one.num_outputs for one in asked}

    def choose(request_id: str, spec: SampleSpec, digest: int) -> int:
        return EOS if spec.output_index + 1 == lengths[request_id] else EOS + 1

    executor = SimExecutor(config.cache, SimConfig(ledger=False), choose)
    clock = VirtualClock()
    engine = Engine(
        config, executor, components=option.components, clock=clock, eos_token_ids=(EOS,)
    )
    engine.observers.append(tally)
    _serve(engine, clock, asked)
    return tally.row(name, engine)


def _config(asked: Sequence[Asked], options: dict[str, Any]) -> EngineConfig:
    lengths = [len(one.prompt_token_ids) + one.max_tokens for one in asked]
    config = EngineConfig.of(**{"max_model_len": max(lengths), **options})
    if config.cache.num_blocks is not None:
        return config
    room = sum(-(-length // config.cache.block_size) for length in lengths)
    return replace(config, cache=replace(config.cache, num_blocks=room))


def _serve(engine: Engine, clock: VirtualClock, asked: Sequence[Asked]) -> None:
    """Requests come at their second, whatever the steps take; an idle engine waits for the next."""
    pending = deque(sorted(asked, key=lambda one: one.at))
    for _ in range(MAX_STEPS):
        if pending and not engine.has_unfinished_requests():
            clock.jump_to(pending[0].at)
        while pending and pending[0].at <= clock.now():
            one = pending.popleft()
            engine.add_request(
                one.request_id, one.prompt_token_ids, one.params, arrival_time=one.at
            )
        if not engine.has_unfinished_requests():
            return
        engine.step()
    raise RuntimeError(
        f"{len(engine.requests)} requests are unfinished after {MAX_STEPS:,} steps: ask for fewer "
        f"or shorter ones"
    )
