"""Both prefix caches against one plain model, over a real pool, and the cases they share."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prefix_driver import PLAIN, SCRIPTS, Driver, play

from minipaged.cache.hash_prefix import HashPrefixCache
from minipaged.cache.pool import BlockPool
from minipaged.cache.radix_prefix import RadixPrefixCache

BOTH = pytest.mark.parametrize("make", [HashPrefixCache, RadixPrefixCache])


@BOTH
@settings(max_examples=150, deadline=None)
@given(SCRIPTS, st.integers(1, 3), st.integers(4, 10))
def test_equals_the_plain_model_while_blocks_are_evicted(make, script, block_size, num_blocks):
    play(Driver(make, num_blocks, block_size), script, after=Driver.check_known)


@settings(max_examples=150, deadline=None)
@given(SCRIPTS, st.integers(1, 3))
def test_both_match_the_same_number_of_blocks_if_nothing_is_evicted(script, block_size):
    by_hash, by_tree = (
        play(Driver(make, 400, block_size), script) for make in (HashPrefixCache, RadixPrefixCache)
    )
    assert by_hash == by_tree


@BOTH
@settings(max_examples=150, deadline=None)
@given(SCRIPTS, st.integers(1, 3), st.data())
def test_blocks_forgotten_in_any_order_are_never_returned(make, script, block_size, data):
    driver = Driver(make, 30, block_size)
    play(driver, script)
    known = sorted(driver.cache.known_blocks())
    gone = set(data.draw(st.lists(st.sampled_from(known))) if known else [])
    for block_id in gone:
        driver.cache.forget(block_id)
    left = set(driver.cache.known_blocks())
    assert not left & gone
    assert left == {b for b in range(30) if driver.pool.block_hash(b) is not None}
    for key, tokens in driver.contents.values():
        for entry, block_id in enumerate(driver.cache.match([*tokens, 0], key)):
            assert block_id in left
            assert driver.contents[block_id] == driver.prefix(tokens, key, entry)


class Counted(list):
    """A list that counts how many of its elements are read."""

    read = 0

    def __getitem__(self, index):
        found = list.__getitem__(self, index)
        self.read += len(found) if isinstance(index, slice) else 1
        return found

    def __iter__(self):
        self.read += len(self)
        return list.__iter__(self)


@BOTH
def test_publishing_one_more_block_reads_that_block_only(make):
    def cost(depth):
        cache = make(4, BlockPool(depth + 1))
        tokens, ids = Counted(range(4 * depth + 4)), Counted(range(depth + 1))
        cache.publish(tokens, ids, 0, depth, PLAIN)
        tokens.read = ids.read = 0
        cache.publish(tokens, ids, depth, depth + 1, PLAIN)
        return tokens.read, ids.read

    assert cost(2) == cost(2000)
    assert cost(2)[0] == 4


@BOTH
def test_match_reads_one_block_past_the_prefix_at_most(make):
    driver = Driver(make, 40, 4)
    driver.run([1] * 12)
    tokens = Counted([1] * 8 + [2] * 100)
    assert len(driver.cache.match(tokens, PLAIN)) == 2
    assert tokens.read <= 4 * 4  # the block that is looked up may be read once more to compare it


@BOTH
def test_nothing_known_nothing_found(make):
    cache = make(4, BlockPool(4))
    assert cache.match([], PLAIN) == cache.match([1] * 9, PLAIN) == []
    assert cache.publish([1] * 9, [0, 1, 2], 0, 0, PLAIN) == []
    assert list(cache.known_blocks()) == []
    cache.forget(3)


@BOTH
def test_a_tuple_of_tokens_finds_what_a_list_published(make):
    driver = Driver(make, 8, 4)
    driver.run([1, 2, 3, 4, 5])
    assert driver.cache.match((1, 2, 3, 4, 5), PLAIN) == driver.cache.match([1, 2, 3, 4, 5], PLAIN)
    assert len(driver.cache.match((1, 2, 3, 4, 5), PLAIN)) == 1


@BOTH
def test_a_block_that_is_not_full_cannot_be_published(make):
    cache = make(4, BlockPool(4))
    with pytest.raises(ValueError, match="need 12 tokens .* has 10"):
        cache.publish([1] * 10, [0, 1, 2], 0, 3, PLAIN)
    with pytest.raises(ValueError, match=r"3 different blocks, .* has 12 and \[0, 1\]"):
        cache.publish([1] * 12, [0, 1], 0, 3, PLAIN)
    with pytest.raises(ValueError, match=r"2 different blocks, .* has 8 and \[3, 3\]"):
        cache.publish([1] * 8, [3, 3], 0, 2, PLAIN)
    assert list(cache.known_blocks()) == []


@BOTH
def test_a_known_block_cannot_be_published_with_other_tokens(make):
    pool = BlockPool(4)
    cache = make(2, pool)
    cache.publish([1, 2], [0], 0, 1, PLAIN)
    for tokens, table, first, key in (
        ([3, 4], [0], 0, PLAIN),
        ([1, 2], [0], 0, ("salt", "")),
        ([1, 2, 3, 4], [0, 0], 1, PLAIN),
        ([5, 6, 7, 8], [1, 0], 0, PLAIN),
        ([1, 2, 1, 2], [1, 0], 0, PLAIN),
    ):
        with pytest.raises(ValueError, match="block 0 is known with other tokens"):
            cache.publish(tokens, table, first, len(table), key)
        assert cache.match([1, 2, 3], PLAIN) == [0]
        assert cache.match([*tokens, 0], key) == (
            [0] if tokens[:2] == [1, 2] and key == PLAIN else []
        )
        assert list(cache.known_blocks()) == [0]
        assert [pool.block_hash(b) is not None for b in range(4)] == [True, False, False, False]


@BOTH
def test_publishing_the_same_blocks_twice_changes_nothing(make):
    """Two forks of one sequence publish the blocks that they share, one after the other."""
    pool = BlockPool(4)
    cache = make(2, pool)
    for _ in range(2):
        assert cache.publish([1, 2, 3, 4], [2, 3], 0, 2, PLAIN) == []
        assert cache.match([1, 2, 3, 4, 5], PLAIN) == [2, 3]
    cache.forget(3)
    cache.forget(2)
    assert cache.match([1, 2, 3, 4, 5], PLAIN) == []
    assert list(cache.known_blocks()) == []


@BOTH
def test_a_sequence_whose_earlier_blocks_were_forgotten_is_published_from_its_start(make):
    cache = make(2, BlockPool(4))
    cache.publish([1, 2], [0], 0, 1, PLAIN)
    cache.forget(0)
    assert cache.publish([1, 2, 3, 4], [0, 1], 1, 2, PLAIN) == []
    assert cache.match([1, 2, 3, 4, 5], PLAIN) == [0, 1]


@BOTH
def test_case_14_a_resumed_request_finds_its_own_blocks(make):
    driver = Driver(make, 8, 4)
    prompt = list(range(10))
    driver.run(prompt)  # preempted: its blocks were freed
    resumed = driver.start(prompt)
    assert resumed.hits * 4 == 8
    assert len(resumed.table) == 3


@BOTH
def test_case_20_at_least_one_token_is_left_to_compute(make):
    driver = Driver(make, 8, 4)
    prompt = list(range(8))
    assert [driver.run(prompt).hits for _ in range(4)] == [0, 1, 1, 1]
    assert [len(driver.cache.match(prompt[:n], PLAIN)) for n in (0, 1, 4, 5, 8)] == [0, 0, 0, 1, 1]
    assert driver.pool.num_free == 8


@BOTH
def test_case_21_no_hit_before_a_block_is_computed(make):
    driver = Driver(make, 12, 4)
    prompt = list(range(9))
    first, second = driver.start(prompt), driver.start(prompt)
    assert (first.hits, second.hits) == (0, 0)
    driver.compute(first)
    driver.compute(second)
    assert driver.start(prompt).hits * 4 == 8


@BOTH
def test_case_22_an_aborted_chunk_leaves_no_trace(make):
    driver = Driver(make, 2, 4)
    prompt = list(range(8))
    aborted = driver.start(prompt)
    driver.compute(aborted, end=4)
    driver.finish(aborted)
    assert len(driver.cache.match(prompt, PLAIN)) == 1
    assert driver.start([9] * 8) is not None  # takes both blocks, has computed nothing yet
    assert driver.cache.match(prompt, PLAIN) == driver.cache.match([9] * 8, PLAIN) == []
    driver.check_known()


@BOTH
def test_case_23_the_tail_of_a_chain_is_evicted_first(make):
    driver = Driver(make, 3, 4)
    chain = driver.run(list(range(12)))
    assert driver.take(1) == [chain.table[2]]
    assert driver.cache.match([*range(12), 0], PLAIN) == chain.table[:2]


@BOTH
def test_case_25_chunks_publish_what_the_whole_publishes(make):
    prompt = list(range(12))
    driver = Driver(make, 8, 4)
    chunked = driver.start(prompt)
    driver.compute(chunked, end=5)
    driver.compute(chunked, end=12)
    assert driver.cache.match([*prompt, 0], PLAIN) == chunked.table


@BOTH
def test_case_25_and_claim_10_equal_second_blocks_with_unequal_first_ones(make):
    driver = Driver(make, 8, 4)
    driver.run([1, 2, 3, 4, 9, 9, 9, 9])
    assert driver.cache.match([5, 6, 7, 8, 9, 9, 9, 9, 0], PLAIN) == []


@BOTH
def test_case_26_tenants_and_adapters_share_nothing(make):
    driver = Driver(make, 16, 4)
    prompt = list(range(9))
    salts = [("", "X"), ("X", ""), PLAIN, ("X", "X"), ("XX", ""), ("X', '", ""), ("", "', 'X")]
    assert [len(driver.cache.match(prompt, key)) for key in salts] == [0] * 7
    driver.run(prompt, salts[0])
    assert [len(driver.cache.match(prompt, key)) for key in salts] == [2, 0, 0, 0, 0, 0, 0]


@BOTH
def test_claim_17_idle_blocks_are_reclaimed_on_demand(make):
    """Prompts that never repeat lock no memory: every one of them finds the whole pool."""
    driver = Driver(make, 4, 4)
    for round_ in range(10):
        assert driver.run([round_] * 16).hits == 0
        assert driver.pool.num_free == 4
        driver.check_known()
