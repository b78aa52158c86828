"""Block table: the address formula, against a pool laid out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipaged.cache.table import BlockTable


def test_where_token_37_is():
    """Block size 16, third entry 142: slot 142 * 16 + 5 = 2277 (claim E3)."""
    table = BlockTable(16)
    table.append_blocks([7, 91, 142])
    assert table.slot(37) == 2277


@given(st.integers(1, 20), st.lists(st.integers(0, 99), unique=True, max_size=8), st.data())
def test_slots_walk_through_the_blocks_in_order(block_size, block_ids, data):
    table = BlockTable(block_size)
    cut = data.draw(st.integers(0, len(block_ids)))
    table.append_blocks(block_ids[:cut])
    table.append_blocks(block_ids[cut:])
    walked = [b * block_size + i for b in block_ids for i in range(block_size)]
    assert table.num_slots == len(walked)
    assert table.slot_mapping(0, len(walked)) == walked
    assert [table.slot(p) for p in range(len(walked))] == walked
    for outside in (-1, len(walked)):
        with pytest.raises(IndexError, match=f"position {outside}"):
            table.slot(outside)


def test_release_hands_over_the_blocks_head_first():
    table = BlockTable(4)
    table.append_blocks([5, 2, 9])
    assert table.release() == [5, 2, 9]
    assert len(table) == 0 and table.num_slots == 0
