"""A run of the real engine without a model, for pictures: workload in, trace out. No torch.

The engine, its scheduler and its memory are the ones that serve; in place of a model stands the
ledger of exec/sim_exec.py, and time is that of its cost model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipaged.clock import VirtualClock
from minipaged.components import Components
from minipaged.config import EngineConfig, SamplingParams
from minipaged.engine import Engine
from minipaged.exec.sim_exec import SimExecutor
from minipaged.require import require_int
from minipaged.trace import Recorder, Trace
from minipaged.viz.palette import SIGNS
from minipaged.workload import Arrival, replay

MAX_STEPS = 100_000


def simulate(
    arrivals: Sequence[Arrival | tuple[int, int]],
    *,
    components: Components | None = None,
    **config: Any,
) -> Trace:
    """Serve a workload on a virtual clock and return the record of every step.

    arrivals: Arrivals, or (prompt_len, output_len) pairs in tokens. Pairs all arrive at step 0,
        share no tokens, run to their full length, and are called A, B, C ... as in the pictures.
    components: your own parts in place of the reference's.
    config: options of EngineConfig.of. Where they are left out, num_blocks is room for all
        requests at once and max_model_len the longest of them.

    ValueError if a request can never be served; RuntimeError after 100,000 steps.
    Cost: O(tokens + context) per request and step, as the ledger reads every slot again.
    """
    requests = _arrivals(arrivals)
    lengths = [len(a.prompt_token_ids) + a.params.max_tokens for a in requests]
    if config.get("max_model_len") is None:
        config["max_model_len"] = max(lengths)
    made = EngineConfig.of(**config)
    if made.cache.num_blocks is None:
        room = sum(-(-length // made.cache.block_size) for length in lengths)
        made = EngineConfig.of(**{**config, "num_blocks": room})
    engine = Engine(made, SimExecutor(made.cache), components=components, clock=VirtualClock())
    recorder = Recorder(engine)
    engine.observers.append(recorder)
    for steps, _ in enumerate(replay(engine, requests), 1):
        if steps == MAX_STEPS and engine.has_unfinished_requests():
            raise RuntimeError(
                f"{len(engine.requests)} requests are unfinished after {steps} steps: ask for "
                f"fewer or shorter ones, or look for a part that makes no headway"
            )
    return recorder.trace


def _arrivals(given: Sequence[Arrival | tuple[int, int]]) -> list[Arrival]:
    """All as Arrivals; ValueError names the entry that is neither an Arrival nor a pair."""
    if not given:
        raise ValueError("arrivals is empty: give at least one, such as [(16, 8)]")
    made, first_token = [], 1
    for number, entry in enumerate(given):
        if isinstance(entry, Arrival):
            made.append(entry)
            continue
        made.append(_pair(number, entry, first_token))
        first_token += len(made[-1].prompt_token_ids)
    return made


def _pair(number: int, entry: tuple[int, int], first_token: int) -> Arrival:
    if not isinstance(entry, tuple | list) or len(entry) != 2:
        raise ValueError(
            f"arrivals[{number}] is {entry!r}: give an Arrival or a pair (prompt_len, output_len)"
        )
    for name, value in zip(("prompt_len", "output_len"), entry, strict=True):
        require_int(f"{name} of arrivals[{number}]", value, 1, "a request has at least one token")
    prompt = list(range(first_token, first_token + entry[0]))
    return Arrival(_name(number), prompt, SamplingParams(max_tokens=entry[1], ignore_eos=True), 0)


def _name(number: int) -> str:
    """A, B, C ... and once the letters are used up A1, B1, C1 ..."""
    rounds, place = divmod(number, len(SIGNS))
    return f"{SIGNS[place]}{rounds or ''}"
