"""Random workloads against the engine: python -m minipaged.fuzz --workloads 1000 --seed 0

Each workload draws a pool, a budget, limits, a prefix cache or none, arrivals with shared
beginnings, salts and priorities, several samples, forks and aborts, and how victims are chosen and
what becomes of them. It runs over the ledger executor with every
invariant checked after every step, and each sample's tokens are compared with those of the same
request alone in an engine with room to spare. Output must depend neither on the schedule nor on
what is shared; nothing may be left behind.

Workload i of seed S is the same whatever N is: `--seed S --only i` runs it again.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from minipaged.components import Components
from minipaged.config import EngineConfig, SamplingParams
from minipaged.engine import Engine
from minipaged.exec.sim_exec import SimConfig, SimExecutor
from minipaged.fuzz_workload import Fork, FuzzWorkload, draw_workload
from minipaged.output import RequestOutput
from minipaged.plan import StepPlan, StepResult
from minipaged.workload import Arrival

EOS = 0


class FuzzFailure(AssertionError):
    """A workload broke a promise; the message says which and how to run it again."""


Key = tuple[str, int]  # request id and sample index


@dataclass(slots=True)
class Outcome:
    """What became of each sample: its tokens, its finish reason; refused: requests that were.

    accepted: prompt and parameters of every request that was let in, forks included.
    """

    tokens: dict[Key, list[int]] = field(default_factory=dict)
    reasons: dict[Key, str | None] = field(default_factory=dict)
    accepted: dict[str, tuple[list[int], SamplingParams]] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    steps: int = 0
    preemptions: int = 0
    swaps: int = 0
    hits: int = 0
    copies: int = 0
    forks: int = 0

    def accept(self, request_id: str, prompt: Sequence[int], params: SamplingParams) -> None:
        """A request was let in; nothing has come of it yet."""
        self.accepted[request_id] = list(prompt), params
        for index in range(params.n):
            self.tokens[request_id, index] = []
            self.reasons[request_id, index] = None


class _AbortingExecutor(SimExecutor):
    """A ledger executor during whose steps the cache is checked and somebody calls abort."""

    engine: Engine
    victims: Sequence[str] = ()

    def execute(self, plan: StepPlan) -> StepResult:
        self.engine.manager.check()  # while tokens are in flight
        result = SimExecutor.execute(self, plan)
        self.engine.abort(self.victims)
        return result


def _engine(
    config: EngineConfig, vocab_size: int, components: Components | None = None
) -> tuple[Engine, _AbortingExecutor]:
    executor = _AbortingExecutor(config.cache, SimConfig(vocab_size=vocab_size))
    executor.engine = Engine(
        config, executor, components=components, vocab_size=vocab_size, eos_token_ids=(EOS,)
    )
    return executor.engine, executor


def run_workload(
    workload: FuzzWorkload, max_steps: int = 20_000, components: Components | None = None
) -> Outcome:
    """Run it, checking every invariant after every step; AssertionError for any breach.

    components: parts to be tried in place of the reference's.
    """
    engine, executor = _engine(workload.config, workload.vocab_size, components)
    outcome = Outcome()
    pending = sorted(workload.arrivals, key=lambda a: a.arrival_step)
    now = 0
    while pending or engine.has_unfinished_requests():
        while pending and pending[0].arrival_step <= now:
            _add(engine, pending.pop(0), outcome)
        for fork in workload.forks:
            if fork.step == now:
                _fork(engine, fork, outcome)
        engine.abort([i for step, i, in_flight in workload.aborts if step == now and not in_flight])
        engine.check()
        executor.victims = [i for step, i, flies in workload.aborts if step == now and flies]
        _collect(outcome, engine.step())
        engine.check()
        now += 1
        assert now < max_steps, f"still running after {max_steps} steps"
    outcome.steps = now
    _close(engine, executor, outcome)
    return outcome


def _close(engine: Engine, executor: _AbortingExecutor, outcome: Outcome) -> None:
    """Nothing may be left behind; what was counted goes into the outcome."""
    metrics = engine.metrics
    outcome.preemptions = metrics.num_preemptions_total
    outcome.swaps = metrics.num_swapped_out_blocks_total
    outcome.hits, outcome.copies = metrics.prefix_cache_hits_total, metrics.num_copied_blocks_total
    engine.step()  # tells the executor who finished last
    manager = engine.manager
    pool = manager.pool
    assert pool.num_free == pool.num_blocks, f"{pool.num_blocks - pool.num_free} blocks leaked"
    if manager.swap is not None:
        hosts = manager.swap.pool
        assert hosts.num_free == hosts.num_blocks, "host blocks leaked"
    assert not manager.tables and not engine.times and not len(executor.rows)
    assert not manager.num_entries and not getattr(engine.scheduler, "num_seats", 0)


def _add(engine: Engine, arrival: Arrival, outcome: Outcome) -> None:
    request_id, prompt, params, _, salt, priority = arrival
    slots, limit = engine.manager.num_slots, engine.max_model_len
    fits = len(prompt) < limit and len(prompt) <= slots
    try:
        engine.add_request(request_id, prompt, params, cache_salt=salt, priority=priority)
    except ValueError as refusal:
        assert not fits, f"{request_id} was refused although it fits: {refusal}"
        assert str(len(prompt)) in str(refusal), f"the refusal does not state the need: {refusal}"
        outcome.refused.add(request_id)
    else:
        assert fits, f"{request_id} can never fit but was accepted"
        outcome.accept(request_id, prompt, params)


def _fork(engine: Engine, fork: Fork, outcome: Outcome) -> None:
    """Branch off a live request; one that has reached its limit has no room for a branch."""
    parent = engine.requests.get(fork.parent)
    if parent is None:
        return
    known = list(parent.token_ids)
    params = SamplingParams(temperature=1.0, max_tokens=5, ignore_eos=True, seed=3)
    fits = len(known) < engine.max_model_len and len(known) <= engine.manager.num_slots
    try:
        engine.fork(fork.parent, fork.new_id, params)
    except ValueError as refusal:
        assert not fits, f"{fork.new_id} was refused although it fits: {refusal}"
    else:
        outcome.forks += 1
        outcome.accept(fork.new_id, known, params)


def _collect(outcome: Outcome, outputs: list[RequestOutput]) -> None:
    for output in outputs:
        outcome.tokens[output.request_id, output.sample_index] += output.new_token_ids
        outcome.reasons[output.request_id, output.sample_index] = output.finish_reason


def solo(
    workload: FuzzWorkload, request_id: str, prompt: list[int], params: SamplingParams
) -> Outcome:
    """What one request writes alone: memory and budget to spare, nothing cached.

    Its own pool would end it at slots + 1 tokens in all: that is applied to the result.
    """
    cache, limit = workload.config.cache, workload.config.max_model_len or 0
    roomy = EngineConfig.of(
        block_size=16, num_blocks=64, max_model_len=limit, seed=workload.config.seed
    )
    engine, _ = _engine(roomy, workload.vocab_size)
    outcome = Outcome()
    outcome.accept(request_id, prompt, params)
    engine.add_request(request_id, prompt, params)
    while engine.has_unfinished_requests():
        _collect(outcome, engine.step())
    room = (cache.num_blocks or 0) * cache.block_size + 1 - len(prompt)
    for key, tokens in outcome.tokens.items():
        if room < len(tokens):
            outcome.tokens[key], outcome.reasons[key] = tokens[:room], "length"
    return outcome


def check_outcome(workload: FuzzWorkload, outcome: Outcome) -> None:
    """Every sample's tokens are those of its solo run; of an aborted one, a beginning."""
    abortable = {request_id for _, request_id, _ in workload.aborts}
    for request_id, (prompt, params) in outcome.accepted.items():
        alone = solo(workload, request_id, prompt, params)
        for key, expected in alone.tokens.items():
            got, reason = outcome.tokens[key], alone.reasons[key]
            if outcome.reasons[key] is None:
                assert request_id in abortable, f"{key} never finished"
                expected, reason = expected[: len(got)], None
            assert got == expected, f"{key} wrote {got}, but alone it writes {expected}"
            assert outcome.reasons[key] == reason, f"{key} ended by {reason} alone"


def fuzz(workloads: int, seed: int, only: int | None = None) -> Iterator[Outcome]:
    """Run workloads one by one; FuzzFailure says which one failed and how to run it again."""
    for number in range(workloads) if only is None else (only,):
        workload = draw_workload(random.Random(f"{seed}/{number}"))
        try:
            outcome = run_workload(workload)
            check_outcome(workload, outcome)
        except Exception as error:
            raise FuzzFailure(
                f"workload {number} of seed {seed}: {type(error).__name__}: {error}\n"
                f"run it again: python -m minipaged.fuzz --seed {seed} --only {number}"
            ) from error
        yield outcome


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; exit code 1 and a way to run it again if a workload fails."""
    parser = argparse.ArgumentParser(prog="minipaged.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="run just this workload of the seed")
    options = parser.parse_args(argv)
    outcomes = []
    try:
        outcomes = list(fuzz(options.workloads, options.seed, options.only))
    except FuzzFailure as failure:
        print(failure, file=sys.stderr)
        return 1
    names = ("steps", "preemptions", "swaps", "hits", "copies", "forks")
    sums = [f"{sum(getattr(outcome, name) for outcome in outcomes)} {name}" for name in names]
    refusals = sum(len(outcome.refused) for outcome in outcomes)
    print(f"{len(outcomes)} workloads clean: {', '.join(sums)}, {refusals} refusals")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
