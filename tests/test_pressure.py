"""Who gives way, who may enter, and how: every policy, each alone; the cases about preemption."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from minipaged.components import Components
from minipaged.config import DeviceCosts, EngineConfig, SamplingParams, SchedulerConfig
from minipaged.metrics import RequestTimes
from minipaged.request import Request
from minipaged.sched.admission import Gates, backoff
from minipaged.sched.order import first_come
from minipaged.sched.preemption import cheaper, recompute, recompute_seconds, swap_seconds
from minipaged.sched.victim import (
    fewest_computed,
    last_admitted,
    lowest_priority,
    most_blocks,
)

MODELS = {  # parameters, layers, hidden size, bytes of keys and values per token (16 bit)
    "Llama-2-7B": (6.738e9, 32, 4096, 524_288),
    "Llama-2-13B": (13.016e9, 40, 5120, 819_200),
    "Llama-3-8B": (8.030e9, 32, 4096, 131_072),
    "Llama-3-70B": (70.554e9, 80, 8192, 327_680),
}


def costs_of(name):
    return DeviceCosts(*MODELS[name])


def thrash(lab, **options):
    engine = lab(block_size=4, num_blocks=6, max_num_batched_tokens=6, **options)
    engine.add("A", 8, 12)
    engine.add("B", 8, 12)
    steps, ends = 0, {}
    while engine.engine.has_unfinished_requests():
        for output in engine.step():
            if output.finish_reason:
                ends[output.request_id] = steps + 1
        steps += 1
    metrics = engine.engine.metrics
    engine.assert_clean()
    return metrics.num_preemptions_total, metrics.num_recomputed_tokens_total, max(ends.values())


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"admission": "chunk"}, (3, 21, 22)),
        ({"admission": "full"}, (1, 11, 22)),
        ({"admission": "full", "admission_headroom": 1}, (1, 11, 22)),
    ],
)
def test_case_15_readmit_then_preempt(lab, options, expected):
    assert thrash(lab, **options) == expected


@pytest.mark.parametrize(
    "remedy",
    [
        {"admission_headroom": 1},
        {"high_water_blocks": 3},
        {"backoff_steps": 4},
        {"watermark_blocks": 2},
    ],
    ids=lambda remedy: next(iter(remedy)),
)
def test_each_remedy_alone_saves_some_of_the_thrash(lab, remedy):
    preemptions, recomputed, _ = thrash(lab, admission="chunk", **remedy)
    assert preemptions < 3 and recomputed < 21


def request(name, computed=0, priority=0, blocks=0):
    made = Request(name, [1] * 20, SamplingParams(), priority=priority)
    made.num_computed_tokens, made.num_blocks = computed, blocks
    return made


def test_victims():
    running = [
        request("a", computed=5, priority=1, blocks=4),
        request("b", computed=2, priority=0, blocks=1),
        request("c", computed=2, priority=1, blocks=4),
        request("d", computed=9, priority=0, blocks=3),
    ]
    for policy, victim in (
        (last_admitted, "d"),
        (fewest_computed, "c"),  # of equals the last admitted
        (lowest_priority, "c"),
        (most_blocks, "c"),
    ):
        assert policy(running, running[0]).request_id == victim


@pytest.mark.parametrize(
    ("victim", "gone"),
    [("last-admitted", "C"), ("fewest-computed", "B"), ("lowest-priority", "A"), (None, "C")],
)
def test_the_configured_victim_is_who_goes(lab, victim, gone):
    engine = lab(block_size=4, num_blocks=9, victim=victim, max_num_batched_tokens=64)
    for name, length, priority in (("A", 11, 9), ("B", 7, 0), ("C", 11, 1)):
        engine.engine.add_request(
            name, list(range(1, length + 1)), SamplingParams(), priority=priority
        )
        engine.outputs[name] = []
    while not engine.engine.scheduler.preempted:
        engine.step()
    assert engine.engine.scheduler.preempted[0].request_id == gone


def test_priority_order_admits_the_urgent_and_preempts_the_others(lab):
    engine = lab(block_size=4, num_blocks=6, max_num_seqs=2, order="priority")
    for name, priority in (("low", 5), ("mid", 3), ("high", 0)):
        engine.engine.add_request(name, [1] * 8, SamplingParams(), priority=priority)
        engine.outputs[name] = []
    engine.step()
    assert list(engine.work(0)) == ["high", "mid"]
    while not engine.engine.scheduler.preempted:
        engine.step()
    assert [r.request_id for r in engine.engine.scheduler.preempted] == ["mid"]
    with pytest.raises(ValueError, match="priority is 'x': give an integer"):
        engine.engine.add_request("bad", [1], priority="x")


def gates(**options):
    return Gates(SchedulerConfig(**options))


def test_gates_are_separate_and_count_free_blocks():
    assert gates()(5, 5) and not gates()(6, 5)
    assert gates(watermark_blocks=2)(3, 5) and not gates(watermark_blocks=2)(4, 5)
    assert not gates(watermark_blocks=1, admission_headroom=1)(4, 5)
    high = gates(high_water_blocks=4)
    assert high(1, 4) and not high(1, 3) and not high.must_shed(0)
    low = gates(low_water_blocks=2)
    assert low.must_shed(1) and not low.must_shed(2)
    assert low(1, 3) and not low(2, 3)  # or whoever comes would have to go at once
    with pytest.raises(ValueError, match="high_water_blocks is 1, below low_water_blocks 2"):
        gates(high_water_blocks=1, low_water_blocks=2)


def test_below_the_low_mark_requests_leave_before_memory_is_out(lab):
    """C15, in free blocks: below low somebody goes, below high nobody enters."""
    engine = lab(block_size=4, num_blocks=8, low_water_blocks=2, high_water_blocks=4)
    engine.add("A", 8, 16)
    engine.add("B", 8, 16)
    refused = shed = 0
    while engine.engine.has_unfinished_requests():
        free, waits = engine.pool.num_free, bool(engine.engine.scheduler.waiting)
        running = len(engine.engine.scheduler.running)
        engine.step()
        gone = engine.engine.scheduler.preempted
        if free < 2 and running > 1:
            assert gone
            shed += 1
        entered = "B" in engine.work(-1) and engine.work(-1)["B"][0] == 0
        if waits and running and free < 4:
            assert not entered
            refused += 1
    assert shed and refused


def test_nothing_holds_a_request_back_while_nothing_runs(lab):
    engine = lab(
        block_size=4,
        num_blocks=4,
        watermark_blocks=9,
        admission_headroom=9,
        high_water_blocks=99,
        low_water_blocks=50,
        backoff_steps=500,
    )
    for name in "ABC":
        engine.add(name, 6, 8)
    assert engine.run() < 40
    engine.assert_clean()


def test_backoff_doubles():
    assert [backoff(3, n) for n in (1, 2, 3, 4)] == [3, 6, 12, 24]
    assert backoff(0, 7) == 0 and backoff(1, 50) == 1024


def test_a_preempted_request_stays_out_for_its_backoff(lab):
    waits = {}
    for steps in (0, 5):
        options = {"admission": "chunk", "max_num_batched_tokens": 6}
        engine = lab(block_size=1, num_blocks=17, backoff_steps=steps, **options)
        engine.add("A", 4, 12)
        engine.add("B", 4, 12)
        while not engine.engine.scheduler.preempted:
            engine.step()
        out = len(engine.executor.plans)
        while "B" not in engine.work(-1):
            engine.step()
        waits[steps] = len(engine.executor.plans) - out
    assert waits[0] < 6 <= waits[5]


@pytest.mark.parametrize(
    ("name", "swap", "recompute"),
    [
        ("Llama-2-7B", 32.8, 27.0),
        ("Llama-2-13B", 51.2, 52.1),
        ("Llama-3-8B", 8.2, 32.1),
        ("Llama-3-70B", 20.5, 282),
    ],
)
def test_claim_c4_milliseconds_per_thousand_tokens(name, swap, recompute):
    parameters, _, _, kv = MODELS[name]
    linear = DeviceCosts(parameters, 1, 1, kv)  # without attention's part
    assert swap_seconds(linear, 1000) * 1e3 == pytest.approx(swap, abs=0.05)
    assert recompute_seconds(linear, 1000) * 1e3 == pytest.approx(recompute, rel=2e-3)


@pytest.mark.parametrize(
    ("name", "tokens", "more"),
    [
        ("Llama-3-70B", 2048, 1.9),
        ("Llama-3-70B", 16_384, 15),
        ("Llama-3-70B", 131_072, 122),
        ("Llama-3-8B", 2048, 3.3),
        ("Llama-3-8B", 16_384, 27),
        ("Llama-3-8B", 131_072, 214),
    ],
)
def test_claim_c5_the_quadratic_term(name, tokens, more):
    costs = costs_of(name)
    linear = 2 * costs.num_parameters * tokens / costs.peak_flops
    assert (recompute_seconds(costs, tokens) / linear - 1) * 100 == pytest.approx(more, rel=0.02)


def test_auto_asks_the_sum_for_each_victim():
    made = request("a")
    for name, tokens, way in (
        ("Llama-3-8B", 1000, "swap"),
        ("Llama-2-7B", 1000, "recompute"),
        ("Llama-2-7B", 30_000, "swap"),  # attention's part makes long contexts dear
        ("Llama-3-70B", 10, "swap"),
    ):
        made.num_computed_tokens = tokens
        assert cheaper(costs_of(name))(made, 1) == way


def test_auto_runs_by_the_configured_costs(lab):
    seen = {}
    for name, costs in (("dear to move", 1e12), ("cheap to move", 1)):
        engine = lab(
            block_size=4,
            num_blocks=6,
            num_host_blocks=20,
            preemption="auto",
            costs=DeviceCosts(kv_bytes_per_token=costs),
        )
        engine.add("A", 8, 12)
        engine.add("B", 8, 12)
        engine.run()
        metrics = engine.engine.metrics
        seen[name] = metrics.num_swapped_out_blocks_total, metrics.num_recomputed_tokens_total
    assert seen["dear to move"] == (0, 12)
    assert seen["cheap to move"][0] > 0 and seen["cheap to move"][1] == 0


def broken_once(right):
    """A policy that fails when it is asked first."""
    asked = []

    def policy(*arguments):
        asked.append(arguments)
        if len(asked) == 1:
            raise ValueError("the policy is broken")
        return right(*arguments)

    return policy


@pytest.mark.parametrize(
    ("field", "policy"),
    [
        ("preemption", broken_once(recompute)),
        ("victim", broken_once(last_admitted)),
        ("order", broken_once(first_come)),
        ("admission", lambda config: broken_once(Gates(config))),
        ("preemption", lambda request, num_blocks: "later"),
    ],
    ids=["preemption", "victim", "order", "admission", "nonsense"],
)
def test_a_policy_that_fails_loses_nobody(lab, field, policy):
    parts = replace(Components(), **{field: policy})
    engine = lab(components=parts, block_size=4, num_blocks=6)
    engine.add("A", 8, 12)
    engine.add("B", 8, 12)
    with pytest.raises(ValueError, match="the policy is broken|the preemption policy said 'later'"):
        engine.run()
    engine.engine.check()
    assert set(engine.engine.requests) == {"A", "B"}
    if field == "preemption" and policy("", 0) == "later":
        engine.engine.abort(["A", "B"])
    else:
        engine.run()
        for name in "AB":
            alone = lab(block_size=4, num_blocks=40)
            alone.add(name, 8, 12)
            alone.run()
            assert engine.outputs[name] == alone.outputs[name]
    engine.assert_clean()


def test_a_plan_that_is_retracted_tells_the_next_one_who_ended(lab):
    engine = lab(block_size=4, num_blocks=20)
    engine.add("A", 3, 1)
    engine.add("B", 3, 4)
    engine.step()

    def fail(plan):
        engine.executor.during = None
        raise RuntimeError("the device is gone")

    engine.executor.during = fail
    with pytest.raises(RuntimeError, match="gone"):
        engine.step()
    engine.run()
    ended = [name for plan in engine.executor.plans for name in plan.finished]
    assert ended == ["A", "A"]  # told in the plan that failed, and once more in the next


def test_preemptions_of_a_step_that_failed_are_counted(lab):
    parts = replace(Components(), victim=broken_once(last_admitted))
    engine = lab(components=parts, block_size=4, num_blocks=6)
    engine.add("A", 8, 12)
    engine.add("B", 8, 12)
    with pytest.raises(ValueError, match="broken"):
        engine.run()
    assert engine.engine.metrics.num_preemptions_total == 2


def test_what_became_known_since_a_refusal_lets_a_request_in(lab):
    """B's prompt is A's: once A has published it, B needs one block, though none was freed."""
    engine = lab(
        block_size=4, num_blocks=14, enable_prefix_caching="hash", max_num_batched_tokens=8
    )
    prompt = list(range(1, 42))
    engine.add("A", prompt, 13)
    engine.step()
    engine.add("B", prompt, 3)
    while "B" not in engine.work(-1):
        engine.step()
    assert len(engine.outputs["A"]) == 1
    engine.run()
    engine.assert_clean()


def test_others_pass_a_request_that_has_to_stay_out(lab):
    engine = lab(block_size=4, num_blocks=30, backoff_steps=64, max_num_batched_tokens=64)
    engine.add("A", 20, 80)
    engine.add("B", 20, 70)
    while not engine.engine.scheduler.preempted:
        engine.step()
    engine.add("C", 4, 2)
    engine.step()
    assert "C" in engine.work(-1)
    assert engine.engine.scheduler.num_out == 1


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_victim_stays_out_for_exactly_its_backoff(lab, steps):
    options = {"admission": "chunk", "max_num_batched_tokens": 3}
    engine = lab(block_size=1, num_blocks=17, backoff_steps=steps, **options)
    engine.add("A", 4, 12)
    engine.add("B", 4, 12)
    while not engine.engine.scheduler.preempted:
        engine.step()
    for _ in range(steps):
        engine.step()
        assert "B" not in engine.work(-1)
    engine.step()
    assert "B" in engine.work(-1)


def test_marks_do_not_let_anybody_in_to_send_it_away(lab):
    came = {}
    for name, marks in (("none", {}), ("marks", {"low_water_blocks": 2, "high_water_blocks": 4})):
        engine = lab(block_size=4, num_blocks=8, **marks)
        engine.add("A", 4, 24)
        engine.add("B", 8, 16)
        engine.run()
        metrics = engine.engine.metrics
        came[name] = metrics.num_preemptions_total, metrics.num_recomputed_tokens_total
    assert came["marks"] <= came["none"]


def test_auto_recomputes_if_both_cost_the_same():
    made = request("a", computed=1)
    costs = DeviceCosts(1.0, 1, 1, 2.0, peak_flops=1.0, host_bandwidth=1.0)
    assert swap_seconds(costs, 1) == recompute_seconds(costs, 1) == 4.0
    assert cheaper(costs)(made, 1) == "recompute"


def test_a_forks_first_token_is_counted_from_the_fork(lab):
    engine = lab(block_size=4, num_blocks=40)
    engine.add("A", 3, 50)
    for _ in range(30):
        engine.step()
    engine.outputs["B"] = []
    engine.engine.fork("A", "B", SamplingParams(max_tokens=2, ignore_eos=True))
    engine.run()
    of_a, of_b = sorted(engine.engine.metrics.time_to_first_token_seconds)[:2]
    assert of_b < 2 * of_a


def test_case_39_ttft_and_end_to_end_under_preemption():
    times = RequestTimes(0.0)
    for now in (3.0, 10.0, 12.0):  # preempted at 4, which makes no token
        times.produced(1, now)
    assert (times.time_to_first_token, times.e2e_latency, times.worst_gap) == (3.0, 12.0, 7.0)
    late = RequestTimes(0.0)
    late.scheduled(1.0)
    late.produced(1, 9.0)
    assert late.time_to_first_token == 9.0


@pytest.mark.parametrize("preemption", ["recompute", "swap"])
def test_case_39_on_the_engine(lab, preemption):
    """The gap of a preempted request is counted from its last token to the next."""
    hosts = 20 if preemption == "swap" else 0
    engine = lab(block_size=4, num_blocks=6, preemption=preemption, num_host_blocks=hosts)
    engine.add("A", 8, 12)
    engine.add("B", 8, 12)
    seen, gaps = [], []
    while engine.engine.has_unfinished_requests():
        for output in engine.step():
            if output.request_id == "B":
                seen.append(engine.engine.clock.now())
                times = output.times
    gaps = [b - a for a, b in itertools.pairwise(seen)]
    assert times.worst_gap == pytest.approx(max(gaps)) and max(gaps) > 3 * min(gaps)
    assert times.time_to_first_token == pytest.approx(seen[0])
    assert times.e2e_latency == pytest.approx(seen[-1])


def test_every_choice_is_refused_by_name_if_it_does_not_exist():
    for name in ("order", "admission", "victim", "preemption"):
        with pytest.raises(ValueError, match=f"{name} is 'x': choose one of"):
            EngineConfig.of(**{name: "x"})
