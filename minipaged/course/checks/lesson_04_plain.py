"""Attention over a block table in plain numbers: every key first, then one softmax over them all.

What can be done in another way is a function of its own (Ways), so that a wrong idea is the right
one with a single function exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from minipaged.course.checks.lesson_03_rows import ints, rows_of
from minipaged.course.plain import Array

Scored = tuple[float, list[float]]  # a key's score, and its value
Blocks = list[list[Scored]]  # of one query head, a list a block


class Call(NamedTuple):
    """The arguments of one call of the attention function; the last three are the meta's."""

    q: Array
    k_pool: Array
    v_pool: Array
    starts: Array
    seq_lens: Array
    tables: Array


def mean(blocks: Blocks) -> list[float]:
    """The mean of the values with softmax's weights."""
    scored = [one for block in blocks for one in block]
    top = max(score for score, _ in scored)
    weights = [math.exp(score - top) for score, _ in scored]
    total = math.fsum(weights)
    return [
        math.fsum(w * value[d] for w, (_, value) in zip(weights, scored, strict=True)) / total
        for d in range(len(scored[0][1]))
    ]


def slots(table: Sequence[int], block_size: int, context: int) -> list[list[int]]:
    """The slots of a context's tokens, a list a block."""
    found = []
    for start in range(0, context, block_size):
        first = table[start // block_size] * block_size
        found.append([first + i for i in range(min(block_size, context - start))])
    return found


@dataclass(frozen=True)
class Ways:
    """How each part is done.

    slots(table, block_size, context); kv_head(query head, query heads, KV heads); scale(head_dim);
    mean(blocks); context(keys of the sequence, queries, number of the query).
    """

    slots: Callable[[Sequence[int], int, int], list[list[int]]] = slots
    kv_head: Callable[[int, int, int], int] = lambda h, heads, kv: h // (heads // kv)
    scale: Callable[[int], float] = lambda dim: 1 / math.sqrt(dim)
    mean: Callable[[Blocks], list[float]] = mean
    context: Callable[[int, int, int], int] = lambda keys, queries, i: keys - queries + i + 1


RIGHT = Ways()


def attention(call: Call, ways: Ways = RIGHT) -> Array:
    """What every query head reads [T, H, D], with the dtype of q."""
    out: list[float] = []
    for row, context in contexts(call, ways):
        table = _row(call.tables, row)
        for blocks in _heads(call, len(out), table, context, ways):
            out += ways.mean(blocks) if context > 0 else [0.0] * call.q.shape[2]
    return Array.of(call.q.dtype, call.q.shape, out)


def contexts(call: Call, ways: Ways = RIGHT) -> Iterator[tuple[int, int]]:
    """For every query its sequence, and how many keys it reads."""
    starts = ints(call.starts)
    for row, keys in enumerate(ints(call.seq_lens)):
        queries = starts[row + 1] - starts[row]
        for number in range(queries):
            yield row, ways.context(keys, queries, number)


def head_blocks(call: Call, query: int, head: int) -> Blocks:
    """Scores and values that one query head reads, as they should be."""
    row, context = list(contexts(call))[query]
    _, heads, dim = call.q.shape
    found = list(_heads(call, query * heads * dim, _row(call.tables, row), context, RIGHT))
    return found[head]


def _row(tables: Array, row: int) -> list[int]:
    width = tables.shape[1]
    return ints(tables)[row * width : (row + 1) * width]


def _heads(call: Call, at: int, table: Sequence[int], context: int, ways: Ways) -> Iterator[Blocks]:
    """The blocks of each query head, for the query whose numbers begin at `at` in q."""
    _, heads, dim = call.q.shape
    block_size, kv_heads = call.k_pool.shape[1:3]
    keys, values = rows_of(call.k_pool, 3), rows_of(call.v_pool, 3)
    q = list(call.q.numbers())[at : at + heads * dim]
    where = ways.slots(table, block_size, context)
    for head in range(heads):
        query = q[head * dim : (head + 1) * dim]
        kv = ways.kv_head(head, heads, kv_heads)
        rows = [[(slot * kv_heads + kv) % len(keys) for slot in block] for block in where]
        yield [
            [(ways.scale(dim) * _dot(query, keys[row]), values[row]) for row in block]
            for block in rows
        ]


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))
