"""Random workloads against the engine: python -m minipaged.fuzz --workloads 1000 --seed 0

Each workload draws a pool, a budget, limits, arrivals and aborts, runs them over the ledger
executor with every invariant checked after every step, and compares each request's tokens with
those of the same request alone in an engine with room to spare. Output must not depend on the
schedule; nothing may be left behind.

Workload i of seed S is the same whatever N is: `--seed S --only i` runs it again.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from minipaged.config import EngineConfig, SamplingParams
from minipaged.engine import Engine
from minipaged.exec.sim_exec import SimConfig, SimExecutor
from minipaged.output import RequestOutput
from minipaged.plan import StepPlan, StepResult
from minipaged.workload import Arrival

EOS = 0


class FuzzFailure(AssertionError):
    """A workload broke a promise; the message says which and how to run it again."""


@dataclass(slots=True)
class FuzzWorkload:
    """One drawn workload. aborts: (step, id, in flight: while the step is being executed)."""

    config: EngineConfig
    vocab_size: int
    arrivals: list[Arrival]
    aborts: list[tuple[int, str, bool]]


@dataclass(slots=True)
class Outcome:
    """What became of each request: its tokens, its finish reason, or the refusal."""

    tokens: dict[str, list[int]] = field(default_factory=dict)
    reasons: dict[str, str | None] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    steps: int = 0
    preemptions: int = 0


def draw_workload(rng: random.Random) -> FuzzWorkload:
    """Small pools, small budgets and short requests, so that every limit is met often."""
    block_size = rng.choice((1, 2, 3, 4, 8, 16))
    config = EngineConfig.of(
        block_size=block_size,
        num_blocks=-(-rng.choice((rng.randint(4, 40), rng.randint(40, 120))) // block_size),
        max_num_seqs=rng.randint(1, 8),
        max_num_batched_tokens=rng.choice((1, 3, 5, 8, 16, 32, 64)),
        max_model_len=rng.choice((rng.randint(4, 40), 120)),
        watermark_blocks=rng.choice((0, 0, 0, 1, 3)),
        admission_headroom=rng.choice((0, 0, 1, 2)),
        seed=rng.randrange(100),
    )
    vocab_size = rng.choice((4, 64, 256))
    count = rng.randint(1, 12)
    spread = rng.choice((0, 3, 20))
    arrivals = [
        Arrival(f"r{i}", _prompt(rng, vocab_size), _params(rng, vocab_size), rng.randint(0, spread))
        for i in range(count)
    ]
    aborts = [
        (rng.randint(0, 40), f"r{rng.randrange(count + 1)}", rng.random() < 0.5)
        for _ in range(rng.choice((0, 0, 1, 2, 5)))
    ]
    return FuzzWorkload(config, vocab_size, arrivals, aborts)


def _prompt(rng: random.Random, vocab_size: int) -> list[int]:
    length = rng.choice(
        (1, rng.randint(1, 12), rng.randint(1, 12), rng.randint(1, 30), rng.randint(1, 90))
    )
    return [rng.randrange(vocab_size) for _ in range(length)]


def _params(rng: random.Random, vocab_size: int) -> SamplingParams:
    max_tokens = rng.choice((1, rng.randint(1, 10), rng.randint(10, 60), rng.randint(10, 60)))
    return SamplingParams(
        temperature=rng.choice((0.0, 1.0)),
        max_tokens=max_tokens,
        min_tokens=rng.choice((0, 0, rng.randint(0, max_tokens))),
        stop_token_ids=rng.choice(((), (rng.randrange(vocab_size),))),
        ignore_eos=rng.random() < 0.3,
        seed=rng.choice((None, rng.randrange(10))),
    )


class _AbortingExecutor(SimExecutor):
    """A ledger executor during whose steps the cache is checked and somebody calls abort."""

    engine: Engine
    victims: Sequence[str] = ()

    def execute(self, plan: StepPlan) -> StepResult:
        self.engine.manager.check()  # while tokens are in flight
        result = SimExecutor.execute(self, plan)
        self.engine.abort(self.victims)
        return result


def _engine(config: EngineConfig, vocab_size: int) -> tuple[Engine, _AbortingExecutor]:
    executor = _AbortingExecutor(config.cache, SimConfig(vocab_size=vocab_size))
    executor.engine = Engine(config, executor, vocab_size=vocab_size, eos_token_ids=(EOS,))
    return executor.engine, executor


def run_workload(workload: FuzzWorkload, max_steps: int = 20_000) -> Outcome:
    """Run it, checking every invariant after every step; AssertionError for any breach."""
    engine, executor = _engine(workload.config, workload.vocab_size)
    outcome = Outcome()
    pending = sorted(workload.arrivals, key=lambda a: a.arrival_step)
    now = 0
    while pending or engine.has_unfinished_requests():
        while pending and pending[0].arrival_step <= now:
            _add(engine, pending.pop(0), outcome)
        engine.abort([i for step, i, in_flight in workload.aborts if step == now and not in_flight])
        engine.check()
        executor.victims = [i for step, i, flies in workload.aborts if step == now and flies]
        _collect(outcome, engine.step())
        engine.check()
        now += 1
        assert now < max_steps, f"still running after {max_steps} steps"
    outcome.steps = now
    outcome.preemptions = engine.metrics.num_preemptions_total
    engine.step()  # tells the executor who finished last
    pool = engine.manager.pool
    assert pool.num_free == pool.num_blocks, f"{pool.num_blocks - pool.num_free} blocks leaked"
    assert not engine.manager.tables and not engine.times and not len(executor.rows)
    return outcome


def _add(engine: Engine, arrival: Arrival, outcome: Outcome) -> None:
    request_id, prompt, params, _ = arrival
    slots, limit = engine.manager.num_slots, engine.max_model_len
    fits = len(prompt) < limit and len(prompt) <= slots
    outcome.tokens[request_id], outcome.reasons[request_id] = [], None
    try:
        engine.add_request(request_id, prompt, params)
    except ValueError as refusal:
        assert not fits, f"{request_id} was refused although it fits: {refusal}"
        assert str(len(prompt)) in str(refusal), f"the refusal does not state the need: {refusal}"
        outcome.refused.add(request_id)
    else:
        assert fits, f"{request_id} can never fit but was accepted"


def _collect(outcome: Outcome, outputs: list[RequestOutput]) -> None:
    for output in outputs:
        outcome.tokens[output.request_id] += output.new_token_ids
        outcome.reasons[output.request_id] = output.finish_reason


def solo_tokens(workload: FuzzWorkload, arrival: Arrival) -> tuple[list[int], str | None]:
    """Tokens and finish reason of one request alone, with memory and budget to spare.

    Its own pool would end it at slots + 1 tokens in all: that is applied to the result.
    """
    cache, limit = workload.config.cache, workload.config.max_model_len or 0
    roomy = EngineConfig.of(
        block_size=16, num_blocks=16, max_model_len=limit, seed=workload.config.seed
    )
    engine, _ = _engine(roomy, workload.vocab_size)
    outcome = Outcome(tokens={arrival.request_id: []})
    engine.add_request(arrival.request_id, arrival.prompt_token_ids, arrival.params)
    while engine.has_unfinished_requests():
        _collect(outcome, engine.step())
    tokens, reason = outcome.tokens[arrival.request_id], outcome.reasons[arrival.request_id]
    room = (cache.num_blocks or 0) * cache.block_size + 1 - len(arrival.prompt_token_ids)
    return (tokens[:room], "length") if room < len(tokens) else (tokens, reason)


def check_outcome(workload: FuzzWorkload, outcome: Outcome) -> None:
    """Every request's tokens are those of its solo run; of an aborted one, a beginning."""
    abortable = {request_id for _, request_id, _ in workload.aborts}
    for arrival in workload.arrivals:
        request_id = arrival.request_id
        if request_id in outcome.refused:
            continue
        expected, reason = solo_tokens(workload, arrival)
        got = outcome.tokens[request_id]
        if outcome.reasons[request_id] is None:
            assert request_id in abortable, f"{request_id} never finished"
            expected, reason = expected[: len(got)], None
        assert got == expected, f"{request_id} wrote {got}, but alone it writes {expected}"
        assert outcome.reasons[request_id] == reason, f"{request_id} ended by {reason} alone"


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
    runs = steps = preemptions = refusals = 0
    try:
        for outcome in fuzz(options.workloads, options.seed, options.only):
            runs, steps = runs + 1, steps + outcome.steps
            preemptions += outcome.preemptions
            refusals += len(outcome.refused)
    except FuzzFailure as failure:
        print(failure, file=sys.stderr)
        return 1
    print(f"{runs} workloads clean: {steps} steps, {preemptions} preemptions, {refusals} refusals")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
