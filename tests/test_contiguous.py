"""The contiguous pool against a row of slots that is looked through slot by slot."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipaged.contiguous import ContiguousPool, Stretch, compare


def free_runs(row: list[str]) -> list[Stretch]:
    """The free stretches of a row in which "" is a free slot."""
    runs, start = [], None
    for slot, owner in enumerate([*row, "end"]):
        if owner == "" and start is None:
            start = slot
        if owner and start is not None:
            runs.append(Stretch(start, slot - start))
            start = None
    return runs


@given(
    num_slots=st.integers(1, 24),
    calls=st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 9)), max_size=60),
)
def test_it_does_what_a_row_of_slots_does(num_slots, calls):
    pool, row = ContiguousPool(num_slots), [""] * num_slots
    for name, length in calls:
        if name in row:
            pool.release(name)
            row = ["" if owner == name else owner for owner in row]
        else:
            fits = [run.start for run in free_runs(row) if run.length >= length]
            if fits:
                assert pool.reserve(name, length) == fits[0]
                row[fits[0] : fits[0] + length] = [name] * length
            else:
                with pytest.raises(MemoryError):
                    pool.reserve(name, length)
        assert pool.gaps == free_runs(row)
        assert pool.num_free == row.count("")
        assert pool.largest_gap == max((run.length for run in pool.gaps), default=0)
        assert {n: (row.index(n), row.count(n)) for n in set(row) - {""}} == pool.held


def test_a_refusal_says_what_is_free_and_changes_nothing():
    pool = ContiguousPool(12)
    for name in "abc":
        pool.reserve(name, 4)
    pool.release("a")
    pool.release("c")
    with pytest.raises(MemoryError, match=r"5 slots in a row, but .* 4 \(8 are free in all\)"):
        pool.reserve("d", 5)
    assert pool.gaps == [(0, 4), (8, 4)]
    assert pool.held == {"b": (4, 4)}


def test_neighbouring_gaps_become_one_on_either_side():
    pool = ContiguousPool(12)
    for name in "abc":
        pool.reserve(name, 4)
    for name in "acb":
        pool.release(name)
    assert pool.gaps == [(0, 12)]


@pytest.mark.parametrize("length", [0, -1, 2.0, True])
def test_a_length_that_is_none_is_refused(length):
    pool = ContiguousPool(4)
    with pytest.raises(ValueError, match=f"length is {length!r}"):
        pool.reserve("a", length)
    assert pool.num_free == 4


def test_whoever_holds_slots_cannot_take_more_and_nobody_gives_back_twice():
    pool = ContiguousPool(4)
    pool.reserve("a", 2)
    with pytest.raises(ValueError, match="holds slots already"):
        pool.reserve("a", 1)
    pool.release("a")
    with pytest.raises(ValueError, match="holds no slots"):
        pool.release("a")
    assert pool.gaps == [(0, 4)]


def test_a_pool_needs_slots():
    with pytest.raises(ValueError, match="num_slots is 0"):
        ContiguousPool(0)


@given(
    limit=st.integers(1, 9),
    num_slots=st.integers(1, 60),
    calls=st.lists(st.sampled_from("abcdefgh"), max_size=60),
)
def test_equal_reservations_never_leave_a_gap_that_the_next_one_cannot_use(limit, num_slots, calls):
    """What lesson 01 says: where all ask for the same, a refusal means that too little is free."""
    pool = ContiguousPool(num_slots)
    for name in calls:
        if name in pool.held:
            pool.release(name)
        elif pool.num_free >= limit:
            pool.reserve(name, limit)


def test_a_hundred_requests_both_ways():
    random.seed(2026)
    lengths = [random.randint(40, 600) for _ in range(100)]
    assert compare(lengths, 2048, 16) == (204_800, 37_213, 38_000)


def test_only_the_last_block_of_a_request_is_partly_empty():
    assert compare([17, 16, 0], 32, 16) == (96, 33, 48)


@pytest.mark.parametrize("length", [-1, 33, 2.0])
def test_a_length_that_no_reservation_holds_is_refused(length):
    with pytest.raises(ValueError, match=f"a length is {length!r}"):
        compare([1, length], 32, 16)
