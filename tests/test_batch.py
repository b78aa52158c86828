"""From a plan to one flat batch of tensors."""

import random

import pytest
import torch

from minipaged.config import SamplingParams
from minipaged.exec.base import BlockRows
from minipaged.exec.batch import pack
from minipaged.plan import SampleSpec, ScheduledItem, StepPlan

SPEC = SampleSpec(SamplingParams(), 0, 0, 0, 1, None)


def item(request_id, tokens, start, first_block, blocks, sample=None):
    return ScheduledItem(request_id, tokens, start, first_block, blocks, sample, 0)


def test_a_chunk_a_decode_and_a_whole_prompt():
    rows = BlockRows(10)
    pack(StepPlan(0, items=[item("a", [1, 2, 3, 4, 5], 0, 0, [7, 2])]), rows, 4)
    plan = StepPlan(
        1,
        items=[
            item("a", [6, 7, 8, 9], 5, 2, [9]),
            item("b", [11, 12], 0, 0, [4], SPEC),
            item("a2", [13], 0, 0, [1], SPEC),
        ],
    )
    batch = pack(plan, rows, 4)
    assert batch.token_ids.tolist() == [6, 7, 8, 9, 11, 12, 13]
    assert batch.positions.tolist() == [5, 6, 7, 8, 0, 1, 0]
    assert batch.slot_mapping.tolist() == [9, 10, 11, 36, 16, 17, 4]
    assert batch.attention.query_start_loc.tolist() == [0, 4, 6, 7]
    assert batch.attention.seq_lens.tolist() == [9, 2, 1]
    assert batch.attention.block_tables.tolist() == [[7, 2, 9], [4, 0, 0], [1, 0, 0]]
    assert batch.sample_rows.tolist() == [5, 6]
    assert batch.samples == [("b", SPEC), ("a2", SPEC)]
    assert all(
        x.dtype == torch.int64
        for x in (batch.token_ids, batch.positions, batch.slot_mapping, batch.sample_rows)
    )


def test_a_copied_tail_replaces_the_last_entry_only():
    rows = BlockRows(10)
    pack(StepPlan(0, items=[item("a", [1, 2, 3, 4, 5, 6], 0, 0, [3, 5])]), rows, 4)
    batch = pack(StepPlan(1, items=[item("a", [7], 6, 1, [8])]), rows, 4)
    assert batch.attention.block_tables.tolist() == [[3, 8]]
    assert batch.slot_mapping.tolist() == [8 * 4 + 2]


def test_blocks_held_ahead_are_not_read():
    batch = pack(StepPlan(0, items=[item("a", [1, 2], 0, 0, [3, 5, 6])]), BlockRows(10), 4)
    assert batch.attention.block_tables.tolist() == [[3]]


def test_no_item_sampled():
    batch = pack(StepPlan(0, items=[item("a", [1], 0, 0, [0])]), BlockRows(1), 4)
    assert batch.samples == [] and batch.sample_rows.shape == (0,)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (item("a", [1] * 9, 0, 0, [0, 1]), "position 8 has no slot, because its 2 blocks of 4"),
        (item("a", [1], 8, 0, [0, 1]), "position 8 has no slot"),
        (item("a", [1], 3, 1, [4]), "only 0 are known; send the whole table"),
        (item("a", [], 0, 0, [0]), "0 tokens at position 0"),
        (item("a", [1], -1, 0, [0]), "1 tokens at position -1"),
        (item("a", [1], 0, 0, [10]), "block 10 is outside the pool of 10"),
    ],
)
def test_impossible_items_are_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        pack(StepPlan(0, items=[bad]), BlockRows(10), 4)


def test_case_30_slots_past_32_bits():
    rows = BlockRows(2**28)
    batch = pack(StepPlan(0, items=[item("a", [1, 2], 0, 0, [2**28 - 1])]), rows, 16)
    assert batch.slot_mapping.tolist() == [2**32 - 16, 2**32 - 15]


def test_equals_a_token_by_token_reference():
    rng = random.Random(0)
    for block_size in (1, 3, 16):
        items, expected = [], []
        for number in range(20):
            start, length = rng.randrange(50), rng.choice([1, 1, 7, 40])
            blocks = [rng.randrange(1000) for _ in range(-(-(start + length) // block_size))]
            items.append(item(f"r{number}", [number] * length, start, 0, blocks))
            expected += [
                blocks[p // block_size] * block_size + p % block_size
                for p in range(start, start + length)
            ]
        batch = pack(StepPlan(0, items=items), BlockRows(1000), block_size)
        assert batch.slot_mapping.tolist() == expected
