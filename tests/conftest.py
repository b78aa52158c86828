"""Helpers that many tests share: a small engine over the ledger, and a way to drive it."""

from __future__ import annotations

import os

# Threads of two processes that spin against each other on two cores cost far more than they gain;
# the tests start subprocesses, and a test run should stand other work beside it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Sequence

import pytest
from hypothesis import settings

from minipaged.clock import VirtualClock
from minipaged.config import EngineConfig, SamplingParams
from minipaged.engine import Engine
from minipaged.exec.sim_exec import SimConfig, SimExecutor
from minipaged.output import RequestOutput
from minipaged.plan import StepPlan, StepResult

# a shared machine may stall for any length of time; that is no fault of the code. Where CI is set
# the examples are the same in every run: a verdict on a change speaks of that change alone.
settings.register_profile("minipaged", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("minipaged")

# processes of their own, started by test_interp.py and test_aot.py: pytest collects them only where
# they are named
collect_ignore = ["aot", "interp"]


class PlanLog(SimExecutor):
    """A ledger executor that keeps every plan, and calls `during(plan)` while a step runs."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.plans: list[StepPlan] = []
        self.during = None
        self.check = lambda: None

    def execute(self, plan: StepPlan) -> StepResult:
        self.plans.append(plan)
        self.check()  # while tokens are in flight: what is about to be written must be unshared
        result = super().execute(plan)
        if self.during is not None:
            self.during(plan)
        return result


class Lab:
    """An engine over the ledger whose every step is checked."""

    def __init__(self, components=None, vocab_size: int = 1000, **options) -> None:
        options.setdefault("max_model_len", 1000)
        config = EngineConfig.of(**options)
        self.executor = PlanLog(config.cache, SimConfig(vocab_size=vocab_size))
        self.engine = Engine(
            config,
            self.executor,
            clock=VirtualClock(),
            components=components,
            vocab_size=vocab_size,
        )
        self.executor.check = self.engine.manager.check
        self.outputs: dict[str, list[int]] = {}
        self.reasons: dict[str, str] = {}

    def add(self, request_id: str, prompt: int | Sequence[int], max_tokens: int = 8, **params):
        """Queue a request; a number stands for a prompt of that many tokens of its own."""
        if isinstance(prompt, int):
            prompt = [(sum(map(ord, request_id)) + 7 * i) % 900 + 1 for i in range(prompt)]
        self.outputs[request_id] = []
        self.engine.add_request(
            request_id, prompt, SamplingParams(max_tokens=max_tokens, ignore_eos=True, **params)
        )

    def step(self) -> list[RequestOutput]:
        """One step, with every invariant checked after it."""
        outputs = self.engine.step()
        self.engine.check()
        for output in outputs:
            self.outputs[output.request_id] += output.new_token_ids
            if output.finish_reason:
                self.reasons[output.request_id] = output.finish_reason
        return outputs

    def run(self, limit: int = 1000) -> int:
        """Step until nothing is left; returns the number of steps."""
        steps = 0
        while self.engine.has_unfinished_requests():
            assert steps < limit, f"still running after {limit} steps"
            self.step()
            steps += 1
        return steps

    @property
    def pool(self):
        return self.engine.manager.pool

    def work(self, step: int) -> dict[str, tuple[int, int]]:
        """What step number `step` computed: id -> (start position, tokens)."""
        return {
            item.request_id: (item.start_position, len(item.token_ids))
            for item in self.executor.plans[step].items
        }

    def assert_clean(self) -> None:
        """Every block free, every refcount 0, no table left."""
        self.engine.check()
        assert self.pool.num_free == self.pool.num_blocks
        assert not self.engine.manager.tables
        assert not self.engine.requests


@pytest.fixture
def lab():
    """A maker of small checked engines: lab(block_size=4, num_blocks=8)."""
    return Lab
