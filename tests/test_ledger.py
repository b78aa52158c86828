"""The ledger notices every fault that a block table can have, and nothing else changes it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipaged.config import CacheConfig, SamplingParams
from minipaged.exec.sim_exec import CostModel, SimConfig, SimExecutor
from minipaged.plan import BlockMove, SampleSpec, ScheduledItem, StepPlan

PARAMS = SamplingParams()


def spec(output_index=0, **params):
    chosen = SamplingParams(**params) if params else PARAMS
    return SampleSpec(chosen, 0, 0, output_index, 1, None)


def item(name, tokens, start, first_block, blocks, sample=True):
    return ScheduledItem(name, tokens, start, first_block, blocks, spec() if sample else None, 0)


def run(plans, block_size=2, num_blocks=8, host=0):
    executor = SimExecutor(
        CacheConfig(block_size=block_size, num_blocks=num_blocks, num_host_blocks=host),
        SimConfig(vocab_size=10**9),
    )
    result = None
    for number, (moves, items) in enumerate(plans):
        result = executor.execute(StepPlan(number, items=items, **moves))
    return result.token_ids


TOKENS = [5, 6, 7, 8, 9]
RIGHT = run([({}, [item("a", TOKENS, 0, 0, [0, 1, 2])])])


@given(st.integers(1, 6), st.permutations(range(6)), st.sets(st.integers(1, 4)))
def test_output_depends_on_the_tokens_only(block_size, blocks, cuts):
    """Any block size, any physical blocks, any chunks: the same next token."""
    plans, bounds = [], [0, *sorted(cuts), 5]
    for start, end in itertools.pairwise(bounds):
        plans.append(({}, [item("a", TOKENS[start:end], start, 0, list(blocks), end == 5)]))
    assert run(plans, block_size, num_blocks=6) == RIGHT


def test_every_token_of_the_history_counts():
    for place in range(5):
        other = [*TOKENS]
        other[place] += 1
        assert run([({}, [item("a", other, 0, 0, [0, 1, 2])])]) != RIGHT


DECODE = [({}, [item("a", TOKENS, 0, 0, [0, 1, 2])]), ({}, [item("a", [4], 5, 3, [])])]
AFTER = run(DECODE)


@pytest.mark.parametrize(
    "second",
    [
        [item("a", [4], 5, 0, [1, 0, 2])],  # two blocks in the wrong order
        [item("a", [4], 5, 0, [0, 5, 2])],  # a block that was never written
        [item("a", [4], 5, 1, [0, 2])],  # an entry overwritten with another
        [item("b", [1, 1], 0, 0, [1]), item("a", [4], 5, 3, [])],  # a block handed out twice
        [item("a", [4], 4, 3, [])],  # the wrong position
    ],
)
def test_a_wrong_table_changes_the_next_token(second):
    assert run([DECODE[0], ({}, second)])["a"] != AFTER["a"]


def test_a_missing_or_misdirected_copy_changes_the_next_token():
    def fork(copies, target=3):
        child = [item("b", [4], 5, 0, [0, 1, target])]
        return run([DECODE[0], ({"copies": copies}, child)])["b"]

    assert fork([BlockMove(2, 3)]) == AFTER["a"]
    assert fork([]) != AFTER["a"]
    assert fork([BlockMove(3, 2)]) != AFTER["a"]
    assert fork([BlockMove(1, 3)]) != AFTER["a"]


def test_case_38_swap_out_comes_before_swap_in():
    """Block 2 goes to the host and is refilled from there in one step."""
    swap_out_1 = [({"swap_out": [BlockMove(b, b) for b in (0, 1, 2)]}, [])]
    both = {
        "swap_out": [BlockMove(2, 3)],
        "swap_in": [BlockMove(1, 2)],
    }
    cache = CacheConfig(block_size=2, num_blocks=8, num_host_blocks=4)
    executor = SimExecutor(cache, SimConfig(vocab_size=10**9))
    executor.execute(StepPlan(0, items=[item("a", TOKENS, 0, 0, [0, 1, 2])]))
    executor.execute(StepPlan(1, swap_out=swap_out_1[0][0]["swap_out"]))
    device, host = list(executor._slots), list(executor._host)
    executor.execute(StepPlan(2, **both))
    assert executor._host == [*host[:6], *device[4:6]]
    assert executor._slots == [*device[:4], *host[2:4], *device[6:]]


def test_sampling_depends_on_seed_and_indices():
    def drawn(seed, sample, index):
        sampled = SampleSpec(SamplingParams(temperature=1.0), seed, sample, index, 2, None)
        plan = ScheduledItem("a", TOKENS, 0, 0, [0, 1, 2], sampled, 0)
        return tuple(run([({}, [plan])])["a"])

    assert drawn(7, 0, 0) == drawn(7, 0, 0)
    assert len({drawn(7, 0, 0), drawn(8, 0, 0), drawn(7, 1, 0), drawn(7, 0, 1)}) == 4


def test_min_tokens_keeps_stop_tokens_out():
    for vocabulary in (2, 3):
        executor = SimExecutor(
            CacheConfig(block_size=2, num_blocks=8), SimConfig(vocab_size=vocabulary)
        )
        for index in range(20):
            sampled = spec(index, min_tokens=10, stop_token_ids=(0,))
            chosen = executor._next_token("a", sampled, index)
            assert index >= 10 or chosen != 0
        first_free = spec(10, min_tokens=10, stop_token_ids=(0,))
        assert executor._next_token("a", first_free, 6) == 0  # 6 is a multiple of both


def test_rows_are_checked():
    with pytest.raises(ValueError, match="block 8 is outside the pool of 8"):
        run([({}, [item("a", [1], 0, 0, [8])])])
    with pytest.raises(ValueError, match="start at logical block 2, but only 1 are known"):
        run([({}, [item("a", [1, 2], 0, 0, [0])]), ({}, [item("a", [3], 2, 2, [1])])])
    with pytest.raises(ValueError, match=": 3 tokens, but its table has 2 slots"):
        run([({}, [item("a", [1, 2, 3], 0, 0, [0])])])


def test_a_pool_size_is_needed():
    with pytest.raises(ValueError, match="num_blocks"):
        SimExecutor(CacheConfig())


COST = CostModel(
    overhead_s=1.0,
    weight_bytes=100,
    kv_bytes_per_token=10,
    flop_per_token=6,
    memory_bandwidth=100,
    host_bandwidth=10,
    peak_flops=2,
)


def test_cost_model_by_hand():
    def seconds(**parts):
        return COST.seconds(StepPlan(0, **parts), block_size=4)

    decode = [item("a", [1], 9, 0, [0])]  # 10 tokens of context
    prefill = [item("a", [1] * 10, 0, 0, [0])]
    assert seconds() == 0
    assert seconds(items=decode) == pytest.approx(1 + max((100 + 100) / 100, 6 / 2))
    assert seconds(items=prefill) == pytest.approx(1 + max(200 / 100, 60 / 2))
    assert seconds(swap_out=[BlockMove(0, 0)], items=decode) == pytest.approx(1 + 3 + 40 / 10)
    assert seconds(copies=[BlockMove(0, 1)], items=decode) == pytest.approx(1 + 3 + 80 / 100)


def test_without_the_ledger_only_time_passes():
    executor = SimExecutor(CacheConfig(block_size=2, num_blocks=8), SimConfig(ledger=False))
    result = executor.execute(StepPlan(0, items=[item("a", TOKENS, 0, 0, [0, 1, 2])]))
    assert result.token_ids == {"a": [0]}
    assert result.elapsed > 0


def test_moves_and_items_outside_the_pool_are_refused():
    for move in (BlockMove(0, 8), BlockMove(8, 0), BlockMove(-1, 1)):
        with pytest.raises(ValueError, match="leaves the pool of 8 blocks"):
            run([({"copies": [move]}, [])])
    for tokens, start in (([], 0), ([1], -1)):
        with pytest.raises(ValueError, match="at least one token, from position 0"):
            run([({}, [item("a", tokens, start, 0, [0])])])
    simulator = SimExecutor(CacheConfig(num_blocks=4), SimConfig(ledger=False))
    with pytest.raises(ValueError, match="block 77 is outside"):
        simulator.execute(StepPlan(0, items=[item("a", [1], 0, 0, [77])]))


def test_min_tokens_over_a_vocabulary_of_stop_tokens_does_not_spin():
    executor = SimExecutor(CacheConfig(block_size=2, num_blocks=8), SimConfig(vocab_size=2))
    assert executor._next_token("a", spec(0, min_tokens=1, stop_token_ids=(0, 1)), 5) in (0, 1)
