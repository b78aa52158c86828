"""Beam search over the ledger: blocks, copies, preemption, giving way, refusals, interruption."""

from __future__ import annotations

from dataclasses import replace

import pytest
from beam_reference import EOS, VOCAB, BeamLedger, ledger_odds, search
from hypothesis import given, settings
from hypothesis import strategies as st

from minipaged import BeamSearchParams, Components, SamplingParams
from minipaged.beam import _Group, beam_search
from minipaged.clock import VirtualClock
from minipaged.config import EngineConfig
from minipaged.engine import Engine
from minipaged.exec.sim_exec import SimConfig


def engine_of(components=None, **options):
    options.setdefault("max_model_len", 200)
    config = EngineConfig.of(**options)
    executor = BeamLedger(config.cache, SimConfig(vocab_size=VOCAB))
    engine = Engine(config, executor, clock=VirtualClock(), components=components, vocab_size=VOCAB)
    executor.check = engine.manager.check
    step, engine.num_steps = engine.step, 0

    def checked():
        engine.check()
        engine.num_steps += 1
        assert engine.num_steps < 3000, "it spins"
        outputs = step()
        engine.check()
        return outputs

    engine.step = checked
    return engine


def assert_clean(engine):
    engine.check()
    pool = engine.manager.pool
    assert pool.num_free == pool.num_blocks and not engine.requests and not engine.times
    assert not engine.manager.tables


def right(prompt, params, **options):
    eos = () if params.ignore_eos else (EOS,)
    found = search(
        ledger_odds,
        prompt,
        width=params.beam_width,
        max_tokens=params.max_tokens,
        length_penalty=params.length_penalty,
        early_stopping=params.early_stopping,
        eos=options.get("eos", eos),
    )
    return [(tokens, pytest.approx(score)) for tokens, _, score in found]


def told(beams):
    return [(beam.token_ids, beam.score) for beam in beams]


def finish(engine):
    while engine.has_unfinished_requests():
        engine.step()
    assert_clean(engine)


@settings(max_examples=150)
@given(
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(1, 10),
    st.sampled_from([-1.0, 0.0, 0.7, 1.0, 3.0]),
    st.sampled_from([False, True, "never"]),
    st.integers(0, 6),
    st.integers(0, 12),
    st.lists(
        st.tuples(st.integers(0, 6), st.integers(1, 20), st.integers(1, 3), st.integers(1, 12)),
        max_size=4,
    ),
    st.lists(st.integers(1, 9), min_size=1, max_size=3),
    st.sampled_from(["off", "hash", "radix"]),
)
def test_beams_never_depend_on_the_schedule(
    size, width, outputs, penalty, stopping, budget, spare, others, prompts, caching
):
    params = BeamSearchParams(width, outputs, penalty, stopping)
    prompts = [[(number + 3 * k) % 10 + 1 for k in range(n)] for number, n in enumerate(prompts)]
    most = max(len(prompt) for prompt in prompts) + outputs - 1
    engine = engine_of(
        block_size=size,
        num_blocks=max(width * -(-most // size) + spare, -(-20 // size)),
        max_num_seqs=max(width, 3) + budget % 3,
        max_num_batched_tokens=width + budget,
        enable_prefix_caching=caching,
    )

    def arrive(now):
        for number, (when, length, n, max_tokens) in enumerate(others):
            if when == now:
                prompt = [(number + k) % 10 + 1 for k in range(length)]
                other = SamplingParams(n=n, max_tokens=max_tokens, ignore_eos=True)
                engine.add_request(f"r{number}", prompt, other)

    arrive(0)
    engine.executor.during = lambda plan: arrive(plan.step + 1)
    found = beam_search(engine, prompts, params, eos_token_ids=[EOS])
    assert list(map(told, found)) == [right(prompt, params) for prompt in prompts]
    finish(engine)


def watch_copies(engine):
    """The copies of every step, as they are planned."""
    copies = []
    engine.executor.during = lambda plan: copies.append(len(plan.copies))
    return copies


def test_copies_at_a_border_of_blocks_and_inside_of_one():
    params = BeamSearchParams(beam_width=2, max_tokens=2, ignore_eos=True)
    for prompt, expected in ([1, 2, 3], [0, 1]), ([1, 2, 3, 4], [0, 0]):
        engine = engine_of(block_size=4, num_blocks=8)
        copies = watch_copies(engine)
        beam_search(engine, [prompt], params)
        assert copies == expected
        assert_clean(engine)


def test_a_beam_is_copied_only_when_it_lives_on_in_two():
    params = BeamSearchParams(beam_width=4, max_tokens=40, ignore_eos=True)
    engine = engine_of(block_size=8, num_blocks=30)
    copies = watch_copies(engine)
    forked, fork = [], engine.fork

    def counted(*args, **options):
        forked.append(len(copies))
        return fork(*args, **options)

    engine.fork = counted
    beam_search(engine, [[1, 2, 3]], params)
    assert len(forked) > 20
    for step, count in enumerate(copies):
        at_border = (3 + step - 1) % 8 == 0
        assert count == (0 if at_border else forked.count(step))
    assert sum(copies) > 15


def test_beams_share_what_they_have_in_common():
    params = BeamSearchParams(beam_width=4, max_tokens=8, ignore_eos=True)
    engine = engine_of(block_size=4, num_blocks=100)
    beam_search(engine, [[1 + k % 9 for k in range(40)]], params)
    assert engine.metrics.peak_saved_blocks >= 30
    assert engine.metrics.peak_blocks <= 10 + 4 * 3


def test_a_preempted_beam_holds_the_others_back():
    params = BeamSearchParams(beam_width=3, max_tokens=12)
    prompt = [1, 2, 3]
    engine = engine_of(block_size=2, num_blocks=21, max_num_seqs=6)
    engine.add_request("r", list(range(1, 9)) * 2, SamplingParams(max_tokens=20, ignore_eos=True))
    taken, take = [], engine.take_back_last_token
    engine.take_back_last_token = lambda request_id: (taken.append(request_id), take(request_id))
    (beams,) = beam_search(engine, [prompt], params, eos_token_ids=[EOS])
    assert told(beams) == right(prompt, params)
    assert engine.metrics.num_preemptions_total > 0 and taken
    finish(engine)


def test_a_group_that_blocks_the_queue_gives_way(monkeypatch):
    """One beam holds blocks that the head of the queue needs; its twin waits behind that one."""
    params = BeamSearchParams(beam_width=2, max_tokens=9, ignore_eos=True)
    engine = engine_of(block_size=1, num_blocks=28, max_num_seqs=2)
    engine.add_request("first", [9, 9], SamplingParams(max_tokens=7, ignore_eos=True))

    def arrive(plan):
        if plan.step == 0:
            big = SamplingParams(max_tokens=3, ignore_eos=True)
            engine.add_request("big", [5] * 24, big)

    engine.executor.during = arrive
    gave_way, inner = [], _Group.give_way
    monkeypatch.setattr(_Group, "give_way", lambda group: (gave_way.append(1), inner(group)))
    (beams,) = beam_search(engine, [[1, 2, 3, 4, 5, 6]], params)
    assert told(beams) == right([1, 2, 3, 4, 5, 6], params)
    assert len(gave_way) == 1 and not engine.requests
    assert_clean(engine)


def test_an_admission_that_never_lets_a_group_run_is_named():
    def one_at_a_time(config):
        return lambda needed, free: False

    parts = replace(Components(), admission=one_at_a_time)
    engine = engine_of(components=parts, block_size=1, num_blocks=100)
    params = BeamSearchParams(beam_width=2, max_tokens=9)
    step = engine.step

    def preempt():
        if engine.num_steps == 4:
            engine.scheduler._preempt(engine.scheduler.running[-1])
        return step()

    engine.step = preempt
    with pytest.raises(RuntimeError, match=r"never run together.*admission"):
        beam_search(engine, [[1, 2, 3]], params)
    assert_clean(engine)


def test_groups_beyond_what_fits_wait_for_their_turn():
    params = BeamSearchParams(beam_width=3, max_tokens=6, ignore_eos=True)
    engine = engine_of(block_size=2, num_blocks=3 * 4 * 2, max_num_batched_tokens=8)
    prompts = [[1 + k, 2, 3] for k in range(5)]
    running = []
    engine.executor.during = lambda plan: running.append(
        len({name.split(".")[0] for name in engine.requests})
    )
    found = beam_search(engine, prompts, params)
    assert list(map(told, found)) == [right(prompt, params) for prompt in prompts]
    assert max(running) == 2 and engine.metrics.num_preemptions_total == 0
    assert_clean(engine)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_blocks": 15}, r"needs 16 blocks \(4 beams of 4\), but the pool has 15"),
        ({"num_blocks": 16, "watermark_blocks": 1}, r"needs 17 blocks .*1 kept free.* has 16"),
        ({"num_blocks": 50, "max_num_seqs": 3}, "beam_width is 4, but max_num_seqs is 3"),
        (
            {"num_blocks": 50, "max_num_batched_tokens": 3},
            "beam_width is 4, but max_num_batched_tokens is 3",
        ),
        ({"num_blocks": 50, "max_model_len": 6}, r"the prompt needs 7 tokens"),
    ],
)
def test_what_can_never_run_is_refused_with_need_and_capacity(options, words):
    engine = engine_of(**{"block_size": 4, "max_model_len": 50, **options})
    params = BeamSearchParams(max_tokens=10)
    with pytest.raises(ValueError, match=words) as caught:
        beam_search(engine, [[1], [2] * 7], params)
    assert str(caught.value).startswith("prompt ") and "\n" not in str(caught.value)
    assert engine.num_steps == 0
    assert_clean(engine)


def test_what_just_fits_runs():
    engine = engine_of(block_size=4, num_blocks=16)
    params = BeamSearchParams(max_tokens=10, ignore_eos=True)
    assert told(beam_search(engine, [[2] * 7], params)[0]) == right([2] * 7, params)
    assert engine.metrics.num_preemptions_total == 0
    assert_clean(engine)


def test_beams_end_at_max_model_len():
    engine = engine_of(block_size=4, num_blocks=60, max_model_len=12)
    (beams,) = beam_search(engine, [[2] * 7], BeamSearchParams(max_tokens=30, ignore_eos=True))
    shorter = BeamSearchParams(max_tokens=5, ignore_eos=True)
    assert told(beams) == right([2] * 7, shorter)
    assert_clean(engine)


def test_several_end_tokens_need_more_candidates():
    params = BeamSearchParams(beam_width=3, max_tokens=9)
    engine = engine_of(block_size=4, num_blocks=60)
    (beams,) = beam_search(engine, [[1, 2]], params, eos_token_ids=[0, 4])
    assert told(beams) == right([1, 2], params, eos=(0, 4))
    with pytest.raises(ValueError, match=r"beam_width is 7.* 2 end tokens.* at most 6"):
        beam_search(engine, [[1, 2]], BeamSearchParams(beam_width=7), eos_token_ids=[0, 4])
    assert_clean(engine)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"beam_width": 11}, "beam_width is 11, but it must be an integer from 1 to 10"),
        ({"beam_width": 0}, "beam_width is 0"),
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"length_penalty": float("nan")}, "length_penalty is nan"),
        ({"length_penalty": 99.0}, "length_penalty is 99.0"),
        ({"early_stopping": "always"}, "early_stopping is 'always'"),
        ({"early_stopping": 1}, "early_stopping is 1"),
        ({"ignore_eos": None}, "ignore_eos is None"),
    ],
)
def test_what_the_parameters_cannot_be(options, words):
    with pytest.raises(ValueError, match=words):
        BeamSearchParams(**options)
