"""The generator of combinations for the kernels' tests."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pairwise import pairwise


def pairs(row):
    return {frozenset(pair) for pair in combinations(row.items(), 2)}


@given(st.lists(st.integers(1, 5), min_size=2, max_size=6))
def test_every_pair_of_values_is_in_a_row(sizes):
    factors = {f"factor {i}": [f"{i}.{k}" for k in range(size)] for i, size in enumerate(sizes)}
    rows = pairwise(factors)
    for a, b in combinations(factors, 2):
        met = {(row[a], row[b]) for row in rows}
        assert met == set(product(factors[a], factors[b]))
    assert all(list(row) == sorted(factors) for row in rows)
    # and none is there for nothing: each brought a pair that those before it lack
    seen = set()
    for row in rows:
        assert pairs(row) - seen
        seen |= pairs(row)


def test_rows_are_few_and_the_same_every_time():
    factors = {
        name: list(range(size))
        for name, size in zip("abcdefgh", [7, 6, 5, 5, 4, 3, 2, 2], strict=True)
    }
    rows = pairwise(factors)
    assert rows == pairwise(factors)
    assert 7 * 6 <= len(rows) <= 60  # the two largest factors alone need 42; all would be 50,400
    assert rows[0] == dict.fromkeys(factors, 0) | rows[0]


@pytest.mark.parametrize("factors", [{}, {"a": [1, 2]}])
def test_without_two_factors_there_are_no_pairs(factors):
    assert pairwise(factors) == []
