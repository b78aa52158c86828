"""What only the hash index has: the chain of hashes, collisions, duplicates."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prefix_driver import PLAIN, SCRIPTS, Driver, play

from minipaged.cache.hash_prefix import HashPrefixCache
from minipaged.cache.pool import BlockPool


def hashes(cache_of, tokens, cuts, key=PLAIN):
    """The hashes of a sequence that is published in pieces ending at `cuts` blocks."""
    pool = BlockPool(8)
    cache, ids, first = cache_of(pool), list(range(8)), 0
    for last in cuts:
        cache.publish(tokens, ids, first, last, key)
        first = last
    return [pool.block_hash(b) for b in ids[: cuts[-1]]]


def rooted(root):
    return lambda pool: HashPrefixCache(4, pool, root=root)


def test_a_hash_is_sha256_of_what_stands_before_and_the_tokens():
    found = hashes(rooted(b"r" * 32), [1, 2, 3, 4, 5, 6, 7, 8], [2])
    packed = [
        b"".join(t.to_bytes(8, "little") for t in part) for part in ((1, 2, 3, 4), (5, 6, 7, 8))
    ]
    first = hashlib.sha256(b"r" * 32 + b"('', '')" + packed[0]).digest()
    assert found == [first, hashlib.sha256(first + packed[1]).digest()]


def test_case_25_chunks_give_the_same_hashes_as_the_whole():
    prompt = list(range(12))
    whole = hashes(rooted(b"r" * 32), prompt, [3])
    assert len(set(whole)) == 3
    assert hashes(rooted(b"r" * 32), prompt, [1, 3]) == whole  # 5 tokens, then 7
    assert hashes(rooted(b"r" * 32), prompt, [1, 2, 3]) == whole


def test_case_26_the_root_is_no_constant():
    one, two = (hashes(lambda pool: HashPrefixCache(4, pool), [1] * 4, [1]) for _ in range(2))
    assert one != two
    assert len(one[0]) == 32


def test_case_26_the_key_reaches_every_later_hash():
    tokens = list(range(8))
    by_key = [hashes(rooted(b"r" * 32), tokens, [2], key) for key in (("X", ""), ("", "X"), PLAIN)]
    assert len({h for found in by_key for h in found}) == 6


def test_case_24_a_collision_is_no_hit():
    pool = BlockPool(4)
    cache = HashPrefixCache(4, pool, hash_function=lambda data: b"always the same")
    cache.publish([1, 2, 3, 4], [0], 0, 1, PLAIN)
    assert cache.match([1, 2, 3, 4, 0], PLAIN) == [0]
    assert cache.match([5, 6, 7, 8, 0], PLAIN) == []
    assert cache.match([1, 2, 3, 4, 0], ("X", "")) == []
    assert cache.match([1, 2, 3, 4, 1, 2, 3, 4, 0], PLAIN) == [0]


def test_case_24_a_block_whose_hash_is_taken_stays_unknown_and_so_do_those_behind_it():
    pool = BlockPool(4)
    cache = HashPrefixCache(1, pool, hash_function=lambda data: b"5" if data[-8] == 5 else b"x")
    cache.publish([1], [0], 0, 1, PLAIN)
    assert cache.publish([2, 5], [1, 2], 0, 2, PLAIN) == []
    assert cache.publish([2, 5, 5], [1, 2, 3], 2, 3, PLAIN) == []
    assert list(cache.known_blocks()) == [0]
    assert [pool.block_hash(b) for b in range(4)] == [b"x", None, None, None]
    assert cache.match([2, 5, 5, 5], PLAIN) == []


@settings(max_examples=150, deadline=None)
@given(SCRIPTS, st.integers(1, 2), st.integers(1, 3))
def test_a_weak_hash_finds_less_but_nothing_false(script, block_size, values):
    def weak(data):
        return bytes([hashlib.sha256(data).digest()[0] % values])

    def make(size, pool):
        return HashPrefixCache(size, pool, root=b"r", hash_function=weak)

    play(Driver(make, 8, block_size), script, after=Driver.check_known)


def test_match_hashes_no_further_than_the_first_miss():
    hashed = []

    def counted(data):
        hashed.append(data)
        return hashlib.sha256(data).digest()

    cache = HashPrefixCache(4, BlockPool(8), hash_function=counted)
    cache.publish(list(range(12)), [0, 1, 2], 0, 3, PLAIN)
    assert len(hashed) == 3
    hashed.clear()
    assert cache.match([*range(8), *[9] * 100], PLAIN) == [0, 1]
    assert len(hashed) == 3
    hashed.clear()
    assert cache.match(list(range(12)), PLAIN) == [0, 1]
    assert len(hashed) == 2


@pytest.mark.parametrize("first_gone", [0, 1, 2])
def test_a_duplicate_serves_when_the_first_is_forgotten(first_gone):
    pool = BlockPool(4)
    cache = HashPrefixCache(2, pool)
    for block_id in (0, 1, 2):
        assert cache.publish([7, 8], [block_id], 0, 1, PLAIN) == []
    assert pool.block_hash(0) == pool.block_hash(1) == pool.block_hash(2)
    left = [b for b in (0, 1, 2) if b != first_gone]
    cache.forget(first_gone)
    for block_id in left:
        assert cache.match([7, 8, 9], PLAIN) == [block_id]
        cache.forget(block_id)
    assert cache.match([7, 8, 9], PLAIN) == []
    assert not cache._entries and not cache._hashes


def test_a_chain_may_go_on_in_another_sequence():
    """Two sequences computed the same blocks; what each has lost the other still has."""
    cache = HashPrefixCache(1, BlockPool(6))
    cache.publish([1, 2, 3], [0, 1, 2], 0, 3, PLAIN)
    cache.publish([1, 2, 3], [3, 4, 5], 0, 3, PLAIN)
    cache.forget(0)
    cache.forget(4)
    assert cache.match([1, 2, 3, 4], PLAIN) == [3, 1, 2]
