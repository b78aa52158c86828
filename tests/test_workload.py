"""Synthetic workloads draw what they say, and replay feeds them to an engine in time."""

from __future__ import annotations

import random

import pytest

from minipaged.bench import bench_scheduler, run_scheduler
from minipaged.config import EngineConfig, SamplingParams
from minipaged.workload import Arrival, SyntheticWorkload, replay


def test_the_generator_draws_in_the_order_that_is_documented():
    draw, clock, when, expected = random.Random(3), random.Random("arrival3"), 0.0, []
    for number in range(20):
        prompt = [draw.randrange(100, 49000) for _ in range(draw.randint(4, 9))]
        outputs = draw.randint(2, 5)
        when += clock.expovariate(0.5)
        expected.append((str(number), prompt, outputs, int(when)))
    workload = SyntheticWorkload(20, (4, 9), (2, 5), arrival_rate=0.5, seed=3)
    got = [
        (a.request_id, a.prompt_token_ids, a.params.max_tokens, a.arrival_step)
        for a in workload.arrivals()
    ]
    assert got == expected
    assert {a.arrival_step for a in SyntheticWorkload(5).arrivals()} == {0}


def arrival(name, step, length=4, max_tokens=3):
    params = SamplingParams(max_tokens=max_tokens, ignore_eos=True)
    return Arrival(name, [1] * length, params, step)


def test_replay_waits_for_arrivals_and_jumps_over_idle_time(lab):
    engine = lab(block_size=4, num_blocks=8)
    seen = []
    arrivals = [arrival("late", 100), arrival("first", 0), arrival("soon", 1)]
    for outputs in replay(engine.engine, arrivals, seen.append):
        engine.engine.check()
        assert outputs
    assert seen == [0, 1, 2, 3, 100, 101, 102]
    assert set(engine.work(0)) == {"first"}
    assert set(engine.work(1)) == {"first", "soon"}
    assert set(engine.work(4)) == {"late"}


def test_an_abort_before_a_step_may_leave_nothing_to_do(lab):
    engine = lab(block_size=4, num_blocks=8)
    steps = list(
        replay(
            engine.engine, [arrival("a", 0), arrival("b", 7)], lambda step: engine.engine.abort("a")
        )
    )
    assert len(steps) == 3
    assert all(output.request_id == "b" for outputs in steps for output in outputs)


def test_a_scheduler_run_counts_what_it_did():
    config = EngineConfig.of(block_size=4, num_blocks=8, max_num_seqs=2)
    run = run_scheduler(config, [arrival("a", 0), arrival("b", 0), arrival("late", 50)])
    assert run.step_list == [(8, 2), (2, 2), (2, 2), (4, 1), (1, 1), (1, 1)]
    assert (run.scheduled_seqs, run.preemptions, run.peak_blocks) == (9, 0, 4)
    report = run.report()
    assert (report["steps"], report["scheduled_tokens"], report["peak_running"]) == (6, 18, 2)
    micro = run.seconds * 1e6
    assert report["us_per_step"] == pytest.approx(micro / 6, abs=0.01)
    assert report["us_per_seq"] == pytest.approx(micro / 9, abs=0.001)
    assert report["us_per_token"] == pytest.approx(micro / 18, abs=0.0001)
    with pytest.raises(ValueError, match="num_blocks is not set"):
        run_scheduler(EngineConfig(), [arrival("a", 0)])


def test_the_bench_reports_its_fastest_run_and_the_median(monkeypatch):
    from minipaged import bench

    times = iter([0.5, 5.0, 1.0, 2.0, 4.0, 3.0])  # the first one does not count

    class Run:
        def report(self):
            return {"us_per_seq": next(times)}

    monkeypatch.setattr(bench, "run_scheduler", lambda config, arrivals: Run())
    came = bench_scheduler(EngineConfig(), SyntheticWorkload(1), 5)
    assert came == {"us_per_seq": 1.0, "us_per_seq_median": 3.0}
