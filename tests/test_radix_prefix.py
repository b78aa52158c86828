"""What only the radix tree has: nodes and splits, swaps, what is protected and what may go."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prefix_driver import PLAIN, SCRIPTS, Driver, play

from minipaged.cache.pool import BlockPool
from minipaged.cache.radix_prefix import RadixPrefixCache


def check_tree(cache, block_size):
    """Every structural rule of the tree."""
    seen = []

    def visit(node, start):
        assert node.start == start
        assert len(node.pages) == len(node.block_ids)
        assert all(len(page) == block_size for page in node.pages)
        for block_id in node.block_ids:
            assert cache._nodes[block_id] is node
        seen.extend(node.block_ids)
        for page, child in node.children.items():
            assert child.pages, "an empty node"
            assert child.pages[0] == page
            assert child.parent is node
            assert child.key == node.key
            visit(child, start + len(node.pages))

    for key, root in cache._roots.items():
        assert root.parent is None and root.key == key and not root.pages
        assert root.children, "an empty subtree"
        visit(root, 0)
    assert len(seen) == len(set(seen))
    assert set(seen) == set(cache._nodes) == set(cache.known_blocks())


@settings(max_examples=200, deadline=None)
@given(SCRIPTS, st.integers(1, 3), st.integers(4, 12))
def test_the_tree_keeps_its_rules(script, block_size, num_blocks):
    def after(driver):
        check_tree(driver.cache, block_size)
        protected, evictable = driver.cache.protected_tokens(), driver.cache.evictable_tokens()
        assert protected + evictable == block_size * len(list(driver.cache.known_blocks()))

    play(Driver(RadixPrefixCache, num_blocks, block_size), script, after)


@settings(max_examples=150, deadline=None)
@given(SCRIPTS, st.integers(1, 2), st.lists(st.integers(0, 29)))
def test_the_tree_keeps_its_rules_whatever_is_forgotten(script, block_size, gone):
    driver = Driver(RadixPrefixCache, 30, block_size)
    play(driver, script)
    for block_id in gone:
        driver.cache.forget(block_id)
        check_tree(driver.cache, block_size)


@settings(max_examples=100, deadline=None)
@given(SCRIPTS, st.integers(1, 2))
def test_no_two_blocks_of_the_tree_hold_the_same(script, block_size):
    driver = Driver(RadixPrefixCache, 30, block_size)
    play(driver, script)
    contents = [driver.contents[b] for b in driver.cache.known_blocks()]
    assert len(contents) == len(set(contents))


def tree(num_blocks, block_size=1):
    driver = Driver(RadixPrefixCache, num_blocks, block_size)
    return driver, driver.cache


def test_a_running_sequence_extends_one_node():
    driver, cache = tree(8)
    sequence = driver.start([0])
    for token in range(1, 8):
        driver.compute(sequence)
        driver.extend(sequence, [token])
    driver.compute(sequence)
    (node,) = cache._roots[PLAIN].children.values()
    assert node.block_ids == sequence.table == list(range(8))


def test_a_node_splits_where_two_sequences_part():
    driver, cache = tree(12)
    first = driver.run([1, 2, 3, 4, 5, 6])
    second = driver.run([1, 2, 3, 9, 9])
    (top,) = cache._roots[PLAIN].children.values()
    assert top.pages == [(1,), (2,), (3,)]
    assert [c.pages for c in top.children.values()] == [[(4,), (5,), (6,)], [(9,), (9,)]]
    assert second.table[:3] == first.table[:3]
    check_tree(cache, 1)


def test_match_changes_nothing():
    driver, cache = tree(12)
    driver.run([1, 2, 3, 4, 5, 6])
    before = cache.dump()
    assert len(cache.match([1, 2, 3, 9, 9], PLAIN)) == 3
    assert cache.dump() == before


def test_duplicates_are_swapped_for_the_blocks_of_the_tree():
    driver, cache = tree(8, block_size=2)
    first, second = driver.start([1, 2, 3, 4, 5]), driver.start([1, 2, 3, 4, 6, 7])
    assert driver.compute(first) == []
    assert driver.compute(second) == [(0, first.table[0]), (1, first.table[1])]
    assert second.table[:2] == first.table[:2]
    assert driver.pool.num_free == 8 - 4
    driver.finish(first)
    driver.finish(second)
    assert cache.match([1, 2, 3, 4, 6, 7, 8], PLAIN) == second.table
    check_tree(cache, 2)


def test_a_swap_may_name_an_idle_block():
    driver, _ = tree(8)
    first = driver.start([1, 2])
    second = driver.start([1, 2])
    driver.compute(first)
    driver.finish(first)
    assert driver.compute(second) == [(0, first.table[0]), (1, first.table[1])]
    assert [driver.pool.refcount(b) for b in second.table] == [1, 1]
    assert driver.pool.num_free == 6


def test_a_fork_that_missed_the_swap_gets_it_with_its_next_block():
    """Another table still holds the duplicate: publish starts over and names older entries."""
    pool = BlockPool(6)
    cache = RadixPrefixCache(1, pool)
    cache.publish([1], [0], 0, 1, PLAIN)
    assert cache.publish([1], [1], 0, 1, PLAIN) == [(0, 0)]
    assert cache.publish([1, 2], [1, 2], 1, 2, PLAIN) == [(0, 0)]
    assert cache.match([1, 2, 3], PLAIN) == [0, 2]
    check_tree(cache, 1)


def test_forgetting_inside_a_chain_drops_all_that_stands_behind_it():
    driver, cache = tree(20)
    chains = [[1, 2, 3, 4, 5], [1, 2, 3, 4, 6], [1, 2, 3, 9], [1, 2, 3, 4, 6, 7]]
    tables = [driver.run(tokens).table for tokens in chains]
    cache.forget(tables[0][1])
    assert list(cache.known_blocks()) == tables[0][:1]
    assert [b for b in range(20) if driver.pool.block_hash(b) is not None] == tables[0][:1]
    for tokens in chains:
        assert cache.match([*tokens, 0], PLAIN) == tables[0][:1]
    check_tree(cache, 1)


def test_a_duplicate_that_is_known_with_other_tokens_is_refused():
    cache = RadixPrefixCache(1, BlockPool(4))
    cache.publish([1], [0], 0, 1, PLAIN)
    cache.publish([2], [1], 0, 1, PLAIN)
    with pytest.raises(ValueError, match="block 1 is known with other tokens"):
        cache.publish([1], [1], 0, 1, PLAIN)
    check_tree(cache, 1)


def test_a_key_without_blocks_costs_nothing():
    driver, cache = tree(2)
    for salt in range(20):
        driver.run([1, 2], (str(salt), ""))
    assert list(cache._roots) == [("19", "")]


def test_hashes_are_never_used_twice():
    driver, _ = tree(2)
    seen = set()
    for round_ in range(10):
        table = driver.run([round_, 0]).table
        seen |= {driver.pool.block_hash(b) for b in table}
    assert len(seen) == 20
    assert all(len(found) == 8 for found in seen)


def counts(cache):
    return cache.protected_tokens(), cache.evictable_tokens()


def test_case_27_a_lock_covers_the_node_itself():
    """root → A (3 tokens) → B (3 tokens); what was split off between them is evicted."""
    driver, cache = tree(7)
    driver.run([1, 2, 3, 9])
    whole = driver.run([1, 2, 3, 4, 5, 6])
    assert driver.take(1) == [3]
    (a,) = cache._roots[PLAIN].children.values()
    (b,) = a.children.values()
    assert (len(a.pages), len(b.pages)) == (3, 3)
    driver.pool.share(cache.match([1, 2, 3, 4, 5, 6, 0], PLAIN))  # lock B
    assert counts(cache) == (6, 0)
    with pytest.raises(MemoryError):
        driver.take(1)
    driver.pool.free(whole.table)  # unlock
    assert counts(cache) == (0, 6)
    assert sorted(driver.take(6)) == sorted(whole.table)
    assert counts(cache) == (0, 0)
    check_tree(cache, 1)


def test_case_28_a_split_keeps_what_is_locked_locked():
    driver, cache = tree(8)
    driver.compute(driver.start([1, 2, 3, 4, 5, 6]))  # runs on: locked
    driver.run([1, 2, 3, 9, 9])
    assert counts(cache) == (6, 2)
    with pytest.raises(MemoryError):
        driver.take(10)
    driver.take(driver.pool.num_free)
    assert counts(cache) == (6, 0)
    check_tree(cache, 1)


def test_case_28_only_what_matched_is_locked():
    driver, cache = tree(8)
    driver.run([1, 2, 3, 4, 5, 6])
    driver.pool.share(cache.match([1, 2, 3, 7], PLAIN))
    assert counts(cache) == (3, 3)


def test_case_29_whole_pages_only():
    driver, cache = tree(4, block_size=4)
    assert cache.match([1, 2, 3], PLAIN) == []
    six = driver.run([1, 2, 3, 4, 5, 6])
    assert cache.match([1, 2, 3], PLAIN) == []
    assert list(cache.known_blocks()) == six.table[:1]
    assert counts(cache) == (0, 4)
    assert next(iter(driver.pool.free_queue)) == six.table[1]  # the tail page goes first


def test_dump_draws_the_tree():
    driver, cache = tree(30, block_size=2)
    driver.run([1, 2, 3, 4, 5, 6], ("", "X"))
    driver.compute(driver.start([1, 2, 3, 4], ("", "X")))
    driver.run([1, 2, 9, 9], ("", "X"))
    driver.run([token // 2 for token in range(18)])
    assert cache.dump() == (
        "salt '', adapter 'X'\n"
        "  1 2 -> 0*\n"
        "    3 4 | 5 6 -> 1* 2\n"
        "    9 9 -> 3\n"
        "salt '', adapter ''\n"
        "  0 0 | 1 1 | 2 2 | 3 3 | … | 8 8 -> 4 5 6 7 … 12"
    )
