"""Static batching, Orca with reservation, prompts first: slower by design, never wrong."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minipaged import LLM, SamplingParams
from minipaged.beam import BeamSearchParams
from minipaged.cache.contiguous import ContiguousBlockPool
from minipaged.cache.pool import BlockPool
from minipaged.components import SCHEDULERS, Components
from minipaged.config import EngineConfig
from minipaged.engine import Engine
from minipaged.exec.sim_exec import SimExecutor
from minipaged.fuzz import check_outcome, run_workload
from minipaged.fuzz_workload import draw_workload
from minipaged.sched.prefill_first import PrefillFirst
from minipaged.sched.scheduler import Scheduler
from minipaged.sched.static import StaticBatching

RESERVING = ("static", "orca")
BASELINES = (*RESERVING, "prefill-first")
CONTIGUOUS = replace(Components(), block_pool=ContiguousBlockPool)


def work(engine, step):
    """Request -> tokens computed in a step of a lab (-1: the latest)."""
    return {item.request_id: len(item.token_ids) for item in engine.executor.plans[step].items}


# --- the claims -------------------------------------------------------------------------------


def e2_lengths():
    draw = random.Random(42)
    return [draw.randint(10, 120) for _ in range(16)]


def served(lab, lengths, scheduler, places, prompts=None):
    """Steps taken, place-steps without a request, and the lab; all arrive at once."""
    engine = lab(scheduler=scheduler, block_size=16, num_blocks=400, max_num_seqs=places)
    for number, length in enumerate(lengths):
        engine.add(f"r{number}", prompts[number] if prompts else 1, length)
    engine.run()
    engine.assert_clean()
    steps = engine.executor.plans
    return len(steps), len(steps) * places - sum(len(plan.items) for plan in steps), engine


def test_claim_e2(lab):
    lengths = e2_lengths()
    assert lengths == [91, 24, 13, 104, 45, 41, 38, 27, 104, 23, 96, 104, 79, 21, 85, 64]
    steps, idle, engine = served(lab, lengths, "static", 4)
    assert (steps, idle) == (338, 393) and engine.engine.scheduler.num_idle_places == 393
    assert f"{sum(lengths) / (steps * 4):.2%}" == "70.93%"
    for name in ("unified", "orca"):
        steps, idle, _ = served(lab, lengths, name, 4)
        assert (steps, steps * 4 - idle) == (279, 959)


def test_claim_e7(lab):
    """A (10 → 200), B (500 → 5), C (50 → 50): B's place idles in 195 of 200 steps."""
    steps, _, engine = served(lab, [200, 5, 50], "static", 3, [10, 500, 50])
    of_b = sum("r1" in {item.request_id for item in plan.items} for plan in engine.executor.plans)
    assert (steps, steps - of_b) == (200, 195)
    assert engine.engine.scheduler.num_idle_places == 195 + 150
    assert engine.engine.scheduler.num_padding_tokens == 490 + 450


def test_claim_c21(lab):
    steps, idle, engine = served(lab, [50, 500, 100, 150], "static", 4)
    assert (steps, idle) == (500, 1200) and idle / (steps * 4) == 0.6
    assert engine.engine.scheduler.num_padding_tokens == 0


# --- static -----------------------------------------------------------------------------------


def test_nobody_joins_a_static_batch_before_its_last_request_has_ended(lab):
    engine = lab(scheduler="static", block_size=4, num_blocks=20, max_num_seqs=2)
    for name, length in (("A", 2), ("B", 4), ("C", 1), ("D", 1)):
        engine.add(name, 3, length)
    engine.run()
    batches = [set(work(engine, n)) for n in range(5)]
    assert batches == [{"A", "B"}, {"A", "B"}, {"B"}, {"B"}, {"C", "D"}]


def test_a_static_batch_holds_as_many_as_find_a_reservation(lab):
    """8 blocks of 4: A and B take 3 each for 3 + 10 - 1 slots, so C has to wait."""
    engine = lab(scheduler="static", block_size=4, num_blocks=8)
    for name in "ABC":
        engine.add(name, 3, 10)
    engine.step()
    assert set(work(engine, -1)) == {"A", "B"} and engine.engine.manager.pool.num_free == 2
    engine.run()
    engine.assert_clean()


def test_prompts_that_the_budget_does_not_hold_are_computed_over_several_steps(lab):
    engine = lab(scheduler="static", block_size=4, num_blocks=20, max_num_batched_tokens=8)
    engine.add("A", 6, 3)
    engine.add("B", 6, 3)
    engine.run()
    assert [work(engine, n) for n in range(3)] == [
        {"A": 6, "B": 2},
        {"A": 1, "B": 4},
        {"A": 1, "B": 1},
    ]


def test_an_aborted_place_idles_too(lab):
    engine = lab(scheduler="static", block_size=4, num_blocks=20, max_num_seqs=2)
    for name in "ABC":
        engine.add(name, 3, 5)
    engine.step()
    engine.engine.abort("A")
    engine.run()
    assert engine.engine.scheduler.num_idle_places == 4  # A's; C is a batch of one
    engine.assert_clean()


# --- orca -------------------------------------------------------------------------------------


def test_orca_fills_a_place_at_once_but_reserves(lab):
    """Each needs 3 of 8 blocks from its first step on, so two run although four would have fit."""
    engine = lab(scheduler="orca", block_size=4, num_blocks=8)
    for name, length in (("A", 10), ("B", 2), ("C", 10), ("D", 10)):
        engine.add(name, 3, length)
    engine.run()
    who = [set(work(engine, n)) for n in range(4)]
    assert who == [{"A", "B", "C"}, {"A", "B", "C"}, {"A", "C"}, {"A", "C"}]
    unified = lab(block_size=4, num_blocks=8)
    for name in "ABCD":
        unified.add(name, 3, 10)
    unified.step()
    assert set(work(unified, -1)) == set("ABCD")


def test_orca_cuts_no_prompt_but_one_that_no_step_can_hold(lab):
    engine = lab(scheduler="orca", block_size=4, num_blocks=40, max_num_batched_tokens=8)
    for name, length in (("A", 3), ("B", 6), ("C", 20)):
        engine.add(name, length, 4)
    engine.run()
    assert [work(engine, n) for n in range(5)] == [
        {"A": 3},  # 5 are left, B needs 6
        {"A": 1, "B": 6, "C": 1},
        {"A": 1, "B": 1, "C": 6},
        {"A": 1, "B": 1, "C": 6},
        {"B": 1, "C": 7},
    ]
    engine.assert_clean()


# --- prefill first ----------------------------------------------------------------------------


def test_prompts_stall_the_outputs_of_the_others(lab):
    engine = lab(scheduler="prefill-first", block_size=4, num_blocks=60, max_num_batched_tokens=16)
    engine.add("A", 3, 4)
    engine.step()
    engine.add("B", 12, 2)
    engine.add("C", 8, 2)
    engine.run()
    assert [work(engine, n) for n in range(4)] == [
        {"A": 3},
        {"B": 12},
        {"C": 8},
        {"A": 1, "B": 1, "C": 1},
    ]


def test_a_prompt_beyond_the_budget_is_cut_and_nobody_writes_meanwhile(lab):
    engine = lab(scheduler="prefill-first", block_size=4, num_blocks=60, max_num_batched_tokens=8)
    engine.add("A", 3, 3)
    engine.step()
    for name, length in (("B", 20), ("C", 3), ("D", 3)):
        engine.add(name, length, 2)
    engine.run()
    assert [work(engine, n) for n in range(6)] == [
        {"A": 3},
        {"B": 8},
        {"B": 8},
        {"B": 4, "C": 3},
        {"D": 3},
        {"A": 1, "B": 1, "C": 1, "D": 1},
    ]
    engine.assert_clean()


def test_a_step_of_prefill_first_computes_prompts_or_outputs(lab):
    engine = lab(scheduler="prefill-first", block_size=4, num_blocks=12, max_num_batched_tokens=20)
    for number in range(9):
        engine.add(f"r{number}", 2 + 3 * number % 7, 6)
    kinds, preempted = set(), 0
    while engine.engine.has_unfinished_requests():
        running = {r.request_id for r in engine.engine.scheduler.running}
        engine.step()
        preempted += len(engine.engine.scheduler.preempted)
        (kind,) = {name in running for name in work(engine, -1)}
        kinds.add(kind)
    assert kinds == {True, False} and preempted
    engine.assert_clean()


@pytest.mark.parametrize("victim", ["most-blocks", "fewest-computed"])
def test_prompts_first_do_not_take_each_others_blocks_for_ever(lab, victim):
    engine = lab(
        scheduler="prefill-first",
        block_size=1,
        num_blocks=23,
        max_num_batched_tokens=1,
        admission="chunk",
        victim=victim,
    )
    engine.add("A", 9, 12)
    engine.add("B", 11, 12)
    steps = 0
    while engine.engine.has_unfinished_requests():
        engine.step()
        steps += 1
        assert steps < 200, "neither moves on"
    engine.assert_clean()


@pytest.mark.parametrize("kind", ["hash", "radix"])
def test_prefill_first_counts_what_is_cached_as_no_work(lab, kind):
    engine = lab(
        scheduler="prefill-first",
        block_size=4,
        num_blocks=40,
        max_num_batched_tokens=12,
        enable_prefix_caching=kind,
    )
    engine.add("A", list(range(1, 13)), 1)
    engine.run()
    engine.add("B", 3, 1)
    engine.add("C", [*range(1, 13), 20, 21], 1)
    engine.step()
    assert work(engine, -1) == {"B": 3, "C": 2}


# --- all of them ------------------------------------------------------------------------------


def drawn(seed, scheduler):
    """A workload of the fuzzer for one of these schedulers: pools, budgets, samples, aborts."""
    workload = draw_workload(random.Random(seed))
    config = workload.config
    cache = config.cache
    if scheduler in RESERVING:
        cache = replace(cache, enable_prefix_caching="off")
    chosen = replace(config.scheduler, scheduler=scheduler)
    return replace(workload, config=replace(config, cache=cache, scheduler=chosen))


@pytest.mark.parametrize("scheduler", BASELINES)
@given(seed=st.integers(0, 10**9))
@settings(max_examples=50)
def test_random_workloads_stay_clean_and_write_what_each_request_writes_alone(scheduler, seed):
    workload = drawn(seed, scheduler)
    check_outcome(workload, run_workload(workload))


@pytest.mark.parametrize("scheduler", RESERVING)
@given(seed=st.integers(0, 10**9))
@settings(max_examples=50)
def test_reservations_are_stretches_and_are_never_preempted(scheduler, seed):
    workload = drawn(seed, scheduler)
    outcome = run_workload(workload, components=CONTIGUOUS)
    check_outcome(workload, outcome)
    assert outcome.preemptions == 0 and outcome.copies == 0


@pytest.mark.parametrize("scheduler", BASELINES)
def test_the_tutor_writes_the_same_text_and_the_ledger_follows_every_plan(scheduler):
    questions = ["What is a block table?", "Where is token 37?", "Tell me a joke.", "What is MQA?"]
    params = SamplingParams(max_tokens=40)
    options = {"block_size": 4, "num_blocks": 110, "max_num_batched_tokens": 64, "max_num_seqs": 3}
    expected = [a.token_ids for a in LLM("tutor").generate(questions, params)]
    llm = LLM("tutor", scheduler=scheduler, **options)
    asked = [llm.tokenizer.prompt_ids(question) for question in questions]
    tokens, plans = run(llm.engine, asked, params)
    assert tokens == expected
    executor = SimExecutor(
        llm.engine.config.cache,
        choose_token=lambda i, spec, digest: expected[int(i)][spec.output_index],
    )
    twin = Engine(llm.engine.config, executor, vocab_size=260, eos_token_ids=(257,))
    assert run(twin, asked, params) == (tokens, plans)
    assert len(plans) > max(map(len, expected))  # it took more than one batch


def run(engine, prompts, params):
    """Tokens of each request and every step's items; all arrive at once."""
    tokens, plans = [[] for _ in prompts], []
    for number, prompt in enumerate(prompts):
        engine.add_request(str(number), prompt, params)
    inner = engine.executor.execute

    def execute(plan):
        plans.append(list(plan.items))
        return inner(plan)

    engine.executor.execute = execute
    while engine.has_unfinished_requests():
        for output in engine.step():
            tokens[int(output.request_id)] += output.new_token_ids
        engine.check()
    return tokens, plans


@pytest.mark.parametrize("scheduler", BASELINES)
def test_a_step_that_fails_loses_nothing(lab, scheduler):
    engine = lab(scheduler=scheduler, block_size=4, num_blocks=20, max_num_seqs=2)
    for name in "ABC":
        engine.add(name, 5, 6)
    engine.step()

    def fail(plan):
        engine.executor.during = None
        raise RuntimeError("the card fell out")

    engine.executor.during = fail
    with pytest.raises(RuntimeError, match="fell out"):
        engine.step()
    engine.engine.check()
    engine.run()
    assert [len(engine.outputs[name]) for name in "ABC"] == [6, 6, 6]
    engine.assert_clean()


@pytest.mark.parametrize("scheduler", BASELINES)
def test_samples_and_beams_are_those_of_the_unified_scheduler(scheduler):
    params = SamplingParams(n=3, temperature=1.0, seed=4, max_tokens=12)
    beams = BeamSearchParams(beam_width=3, max_tokens=6)
    question, texts = "What is preemption?", []
    for name in ("unified", scheduler):
        llm = LLM("tutor", scheduler=name, max_num_seqs=4)
        (answer,) = llm.generate([question], params)
        texts.append([one.text for one in answer.samples])
        if scheduler != "static":
            texts[-1] += [one.text for one in llm.beam_search([question], beams)[0]]
        llm.engine.check()
    assert texts[0] == texts[1]


def test_further_samples_wait_first_in_line_in_their_order(lab):
    engine = lab(scheduler="static", block_size=4, num_blocks=40, max_num_seqs=3)
    engine.add("A", 3, 4, n=3)
    for name in "BCD":
        engine.add(name, 3, 4)
    engine.step()
    waiting = [request.request_id for request in engine.engine.scheduler.waiting]
    assert waiting == ["A~1", "A~2", "D"]
    engine.run()
    engine.assert_clean()


def test_beams_cannot_join_a_static_batch():
    llm = LLM("tutor", scheduler="static")
    with pytest.raises(ValueError, match="beam_width is 4, but scheduler 'static' lets no new"):
        llm.beam_search(["What is preemption?"])
    assert llm.beam_search(["What is preemption?"], BeamSearchParams(beam_width=1, max_tokens=3))


# --- memory in one stretch --------------------------------------------------------------------


def test_external_waste_keeps_orca_waiting_although_enough_is_free(lab):
    """Of 8 blocks A, B, C and D hold 2 each; A and C end, and E needs 4 in a row."""

    def fill(components):
        engine = lab(components=components, scheduler="orca", block_size=4, num_blocks=8)
        for name, length in (("A", 2), ("B", 5), ("C", 2), ("D", 5)):
            engine.add(name, 8 - length + 1, length)
        engine.add("E", 12, 5)
        for _ in range(3):
            engine.step()
        return engine

    engine = fill(CONTIGUOUS)
    pool = engine.engine.manager.pool
    assert (pool.num_free, pool.longest_run, pool.runs()) == (4, 2, [(0, 2), (4, 2)])
    assert "E" not in work(engine, -1)
    engine.run()
    engine.assert_clean()
    assert "E" in work(fill(Components()), -1)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 9)), max_size=30))
def test_a_contiguous_pool_is_first_fit_over_runs(calls):
    pool, held, free = ContiguousBlockPool(12), [], set(range(12))
    for count, which in calls:
        if which < len(held):
            ids = held.pop(which)
            pool.free(ids)
            free |= set(ids)
            continue
        starts = [b for b in range(12) if all(b + i in free for i in range(count))]
        if not starts:
            with pytest.raises(MemoryError, match=f"{count} blocks in a row asked for"):
                pool.allocate(count)
        else:
            expected = list(range(starts[0], starts[0] + count))
            assert pool.allocate(count) == expected
            held.append(expected)
            free -= set(expected)
        assert pool.num_free == len(free) and set(pool.free_queue) == free
        assert sum(length for _, length in pool.runs()) == len(free)
        assert all(pool.refcount(b) == 1 for ids in held for b in ids)


def test_a_reservation_that_does_not_fit_changes_nothing(lab):
    for pool in (BlockPool, ContiguousBlockPool):
        engine = lab(components=replace(Components(), block_pool=pool), block_size=4, num_blocks=4)
        engine.add("A", 3, 3)
        (request,) = engine.engine.scheduler.waiting
        assert not engine.engine.manager.reserve(request, 17)
        assert not engine.engine.manager.tables and engine.engine.manager.pool.num_free == 4
        engine.engine.check()


# --- the choice -------------------------------------------------------------------------------


def test_the_configuration_names_the_scheduler_and_a_given_part_wins(lab):
    for name, kind in SCHEDULERS.items():
        assert type(lab(scheduler=name, num_blocks=4).engine.scheduler) is kind
    assert type(lab(num_blocks=4).engine.scheduler) is Scheduler
    parts = replace(Components(), scheduler=PrefillFirst)
    chosen = lab(components=parts, scheduler="static", num_blocks=4)
    assert type(chosen.engine.scheduler) is PrefillFirst
    assert type(LLM("tutor", scheduler="static").engine.scheduler) is StaticBatching


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scheduler": "orka"}, "scheduler is 'orka': choose one of unified, static, orca"),
        (
            {"scheduler": "static", "enable_prefix_caching": True},
            "enable_prefix_caching is 'hash', but scheduler 'static' reserves",
        ),
        (
            {"scheduler": "orca", "enable_prefix_caching": "radix"},
            "enable_prefix_caching is 'radix', but scheduler 'orca' reserves",
        ),
    ],
)
def test_a_choice_that_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        EngineConfig.of(**options)


def test_a_whole_scheduler_config_still_goes_by_that_name():
    whole = replace(EngineConfig().scheduler, max_num_seqs=3)
    config = EngineConfig.of(scheduler=whole, order="lpm")
    assert (config.scheduler.max_num_seqs, config.scheduler.order) == (3, "lpm")
    assert config.scheduler.scheduler == "unified"
