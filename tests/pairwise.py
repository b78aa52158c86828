"""Few combinations in which every two values of different factors meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any


def pairwise(factors: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Rows {factor: value} such that every pair of values of two factors is in one of them.

    Greedy: a row starts with the first pair that is still missing; then each factor in turn takes
    the value that adds the most missing pairs, of several the one used least so far. The same rows
    every time. Cost: O(rows x values x factors).
    """
    names = list(factors)
    missing = {
        ((a, i), (b, j)): None  # a dict keeps the order, a set does not
        for a, b in combinations(names, 2)
        for i in range(len(factors[a]))
        for j in range(len(factors[b]))
    }
    used = {(name, i): 0 for name in names for i in range(len(factors[name]))}
    rows = []
    while missing:
        row = dict(next(iter(missing)))
        for name in names:
            if name not in row:
                row[name] = max(
                    range(len(factors[name])),
                    key=lambda i, name=name, row=row: (
                        len(_pairs(names, {**row, name: i}) & missing.keys()),
                        -used[name, i],
                    ),
                )
        for pair in _pairs(names, row):
            missing.pop(pair, None)
        for name in names:
            used[name, row[name]] += 1
        rows.append({name: factors[name][row[name]] for name in names})
    return rows


def _pairs(names: Sequence[str], row: Mapping[str, int]) -> set[tuple]:
    chosen = [(name, row[name]) for name in names if name in row]
    return set(combinations(chosen, 2))
