"""Times and counters on a virtual clock, and the trace that pictures are drawn from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipaged.clock import VirtualClock
from minipaged.metrics import RequestTimes, percentile
from minipaged.trace import Recorder, Trace


def test_case_39_times_of_a_stream():
    """Arrive 0, first token 3, preempted 4, next 10, end 12: TTFT 3, worst gap 7."""
    times = RequestTimes(arrival=0.0)
    times.scheduled(2.0)
    for when in (3.0, 10.0, 12.0):
        times.produced(1, when)
    assert times.time_to_first_token == 3
    assert times.worst_gap == 7
    assert times.e2e_latency == 12
    assert times.time_per_output_token == (12 - 3) / 2
    assert times.queue_time == 2


def test_times_before_anything_happened():
    times = RequestTimes(arrival=1.0)
    assert times.time_to_first_token is None
    assert times.time_per_output_token is None
    assert times.queue_time is None
    assert times.e2e_latency is None
    times.produced(1, 5.0)
    assert times.time_per_output_token is None  # one token has no gap


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.floats(0, 100))
def test_percentile_is_the_smallest_value_that_enough_values_do_not_exceed(values, percent):
    result = percentile(values, percent)
    assert result in values
    share = sum(v <= result for v in values) / len(values)
    assert share * 100 >= percent - 1e-9
    smaller = [v for v in values if v < result]
    assert len(smaller) / len(values) * 100 < percent or not smaller


def test_percentile_refuses_nonsense():
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)
    with pytest.raises(ValueError, match="percent is 101"):
        percentile([1.0], 101)


def test_metrics_add_up(lab):
    engine = lab(block_size=4, num_blocks=4)
    engine.add("A", 7, 8)
    engine.add("B", 5, 8)
    engine.run()
    engine.add("C", 3, 4)
    engine.step()
    engine.engine.abort("C")
    metrics = engine.engine.metrics
    assert metrics.request_success_total == {"length": 2, "abort": 1}
    assert metrics.prompt_tokens_total == 15
    assert metrics.generation_tokens_total == 17
    assert metrics.num_preemptions_total >= 1
    assert metrics.steps_total == len(engine.executor.plans)
    assert metrics.scheduled_tokens_total == sum(p.num_tokens for p in engine.executor.plans)
    assert metrics.peak_blocks == 4
    snapshot = metrics.snapshot()
    assert snapshot["minipaged:time_to_first_token_seconds_count"] == 3
    assert snapshot['minipaged:request_success_total{finished_reason="abort"}'] == 1


def recorded(lab):
    engine = lab(block_size=4, num_blocks=4)
    recorder = Recorder(engine.engine)
    engine.engine.observers.append(recorder)
    engine.add("A", 7, 8)
    engine.add("B", 5, 8)
    engine.run()
    return engine, recorder.trace


def test_the_trace_tells_what_the_plans_say(lab):
    engine, trace = recorded(lab)
    assert len(trace.steps) == len(engine.executor.plans)
    for record, plan in zip(trace.steps, engine.executor.plans, strict=True):
        assert record.num_tokens == plan.num_tokens
        held = {b for table in record.tables.values() for b in table}
        assert len(held) + record.num_free == trace.num_blocks
        for work in record.work:
            assert record.computed[work.request_id] == work.start_position
            needed = -(-(work.start_position + work.num_tokens) // trace.block_size)
            assert len(record.tables[work.request_id]) == needed
    sampled = {"A": [], "B": []}
    for record in trace.steps:
        for work in record.work:
            sampled[work.request_id] += work.sampled
    assert sampled == engine.outputs
    events = [(e.kind, e.request_id, e.detail) for s in trace.steps for e in s.events]
    assert events.count(("added", "A", "")) == 1
    assert ("finished", "B", "length") in events
    kinds = [kind for kind, request_id, _ in events if request_id == "B"]
    assert kinds == ["added", "admitted", "preempted", "admitted", "finished"]
    times = [record.time for record in trace.steps]
    assert times == sorted(times) and times[0] > 0


def test_a_trace_survives_the_file(lab, tmp_path):
    _, trace = recorded(lab)
    path = tmp_path / "spür 火.jsonl"
    trace.save(path)
    assert Trace.load(path) == trace
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*lines[:2], "{broken", *lines[2:]]), encoding="utf-8")
    with pytest.raises(ValueError, match="line 3 is not part of a trace"):
        Trace.load(path)
    path.write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="is empty"):
        Trace.load(path)


def test_a_text_with_every_kind_of_line_end_survives_the_file(lab, tmp_path):
    _, trace = recorded(lab)
    trace.steps[0].texts = {"A": "a\u2028b\u0085c\nd\re"}
    trace.save(tmp_path / "t.jsonl")
    assert Trace.load(tmp_path / "t.jsonl") == trace


def test_a_failed_step_is_told(lab):
    engine = lab(block_size=4, num_blocks=8)
    recorder = Recorder(engine.engine)
    engine.engine.observers.append(recorder)
    engine.add("A", 4, 3)
    engine.step()

    def fail(plan):
        raise OSError

    engine.executor.during = fail
    with pytest.raises(OSError):
        engine.step()
    engine.executor.during = None
    engine.run()
    kinds = [event.kind for step in recorder.trace.steps for event in step.events]
    assert kinds == ["added", "admitted", "preempted", "admitted", "finished"]
    assert engine.engine.metrics.num_preemptions_total == 1
    assert [s.elapsed for s in recorder.trace.steps] == [
        engine.executor.config.cost.seconds(engine.executor.plans[i], 4) for i in (0, 2, 3)
    ]


def test_virtual_clock():
    clock = VirtualClock()
    clock.advance(2.5)
    clock.jump_to(2.0)
    assert clock.now() == 2.5
    clock.jump_to(4.0)
    assert clock.now() == 4.0
    with pytest.raises(ValueError, match="cannot go back"):
        clock.advance(-1)
