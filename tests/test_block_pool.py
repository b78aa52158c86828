"""Free queue and block pool: laws against plain models, and the cases about reference counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipaged.cache.block import FreeQueue
from minipaged.cache.manager import KVManager
from minipaged.cache.pool import BlockPool

OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["pop", "append", "prepend", "remove"]), st.integers(-1, 8))
)


@given(OPERATIONS)
def test_free_queue_equals_a_plain_list(operations):
    queue, model = FreeQueue(8), list(range(8))
    for name, block_id in operations:
        if name == "pop":
            if model:
                assert queue.pop_head() == model.pop(0)
            else:
                with pytest.raises(IndexError):
                    queue.pop_head()
        elif name == "remove":
            if block_id in model:
                queue.remove(block_id)
                model.remove(block_id)
            else:
                with pytest.raises(ValueError, match="not on the free queue"):
                    queue.remove(block_id)
        elif block_id in model or not 0 <= block_id < 8:
            with pytest.raises(ValueError, match=r"already|does not exist"):
                getattr(queue, name)(block_id)
        else:
            getattr(queue, name)(block_id)
            model.insert(len(model) if name == "append" else 0, block_id)
        assert list(queue) == model
        assert len(queue) == len(model)
        assert [b for b in range(-1, 9) if b in queue] == sorted(model)


def test_free_queue_operations_touch_no_more_in_a_large_queue():
    """O(1): the number of links read and written does not depend on the queue's length."""

    class Counted(list):
        touched = 0

        def __getitem__(self, index):
            Counted.touched += 1
            return list.__getitem__(self, index)

        def __setitem__(self, index, value):
            Counted.touched += 1
            list.__setitem__(self, index, value)

    def cost(num_blocks):
        queue = FreeQueue(num_blocks)
        queue._next, queue._prev = Counted(queue._next), Counted(queue._prev)
        Counted.touched = 0
        queue.remove(num_blocks // 2)
        queue.append(num_blocks // 2)
        queue.prepend(queue.pop_head())
        return Counted.touched

    assert cost(10) == cost(10_000)


def test_case_11_a_fresh_block_has_refcount_1():
    pool = BlockPool(4)
    ids = pool.allocate(1)
    assert pool.refcount(ids[0]) == 1
    pool.free(ids)
    assert pool.num_free == 4


def test_case_10_double_free_changes_nothing():
    """Without the fork: two holders by share, as after one."""
    pool = BlockPool(4)
    (block,) = pool.allocate(1)
    pool.share([block])
    pool.free([block, block])
    assert list(pool.free_queue).count(block) == 1
    order = list(pool.free_queue)
    for wrong in ([block], [order[1], order[1]]):
        with pytest.raises(ValueError, match="double free"):
            pool.free(wrong)
        assert list(pool.free_queue) == order


def test_case_10_a_double_free_inside_a_list_frees_none_of_it():
    pool = BlockPool(6)
    ids = pool.allocate(3)
    with pytest.raises(ValueError, match=f"block {ids[1]} has 1 holders, not 2"):
        pool.free([*ids, ids[1]])
    assert [pool.refcount(b) for b in ids] == [1, 1, 1]
    assert pool.num_free == 3


def test_allocation_is_all_or_nothing():
    pool = BlockPool(4)
    pool.allocate(1)
    order = list(pool.free_queue)
    with pytest.raises(MemoryError, match="4 blocks asked for, but only 3 are free"):
        pool.allocate(4)
    assert list(pool.free_queue) == order
    with pytest.raises(ValueError, match="block 9 does not exist"):
        pool.share([order[0], 9])
    assert list(pool.free_queue) == order


def test_a_table_is_freed_tail_first():
    pool = BlockPool(3)
    ids = pool.allocate(3)
    for block_id in ids:
        pool.blocks[block_id].block_hash = bytes([block_id])
    pool.free(ids)
    assert pool.allocate(1) == [ids[-1]]


def test_blocks_without_a_hash_are_reused_first_and_hashes_last_until_reuse():
    pool = BlockPool(3)
    ids = pool.allocate(3)
    pool.blocks[ids[0]].block_hash = b"kept"
    pool.free([ids[0]])
    pool.free(ids[1:])
    assert pool.block_hash(ids[0]) == b"kept"
    assert pool.allocate(2) == ids[1:]
    assert pool.allocate(1) == [ids[0]]
    assert pool.block_hash(ids[0]) is None


def test_sharing_an_idle_block_takes_it_off_the_queue():
    pool = BlockPool(3)
    ids = pool.allocate(2)
    pool.free(ids)
    pool.share([ids[1]])
    assert ids[1] not in pool.free_queue
    assert pool.refcount(ids[1]) == 1


def test_the_pool_uses_the_queue_it_is_given():
    class Lifo(FreeQueue):
        def prepend(self, block_id):
            super().append(block_id)

    manager = KVManager(4, 2, free_queue=Lifo)
    ids = manager.pool.allocate(1)
    manager.pool.free(ids)
    assert list(manager.pool.free_queue) == [1, 2, 3, 0]
