"""12.3: split attention in plain numbers, right or with some of the five faults of suspect_kernel.

A piece is read, stored at its place and merged as the exercise's kernel and its launcher do it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from minipaged.course.plain import Array

INF, NAN = math.inf, math.nan
FAULTS = "QPMDS"  # query, place, maximum, division, split
Scored = list[tuple[float, list[float]]]
Piece = tuple[list[float], float]


class Call(NamedTuple):
    """The arguments of split_attention."""

    q: Array
    k_pool: Array
    v_pool: Array
    tables: Array
    seq_lens: Array
    split_size: int

    @property
    def num_pieces(self) -> int:
        """Of the longest sequence."""
        return max(1, -(-int(max(self.seq_lens.numbers())) // self.split_size))


def attention(call: Call, faults: str = "", softmax: str = "") -> tuple[list[float], list[float]]:
    """Output and LSE of each sequence and head, in order.

    faults: letters of FAULTS. softmax: "sum" or "mixture", which is then not scaled when the
    maximum rises, or "lse", to which the maximum is then not added.
    """
    sequences, heads, dim = call.q.shape
    count = call.num_pieces
    stored: list[Piece] = [([NAN] * dim, NAN) for _ in range(sequences * count * heads)]
    for seq in range(sequences):
        for head in range(heads):
            scored = _scored(call, seq, head, 0 if "Q" in faults else seq)
            for piece in range(count):
                keys = slice(piece * call.split_size, (piece + 1) * call.split_size)
                one = _read(scored if "S" in faults else scored[keys], call, faults, softmax)
                row = (seq * count + piece) * heads + head
                stored[seq * heads + head if "P" in faults else row] = one
    out, lses = [], []
    for seq in range(sequences):
        for head in range(heads):
            places = range(seq * count * heads + head, (seq + 1) * count * heads, heads)
            row_out, lse = _merged([stored[place] for place in places])
            out += row_out
            lses.append(lse)
    return out, lses


def pieces_of(call: Call, seq: int, head: int) -> Iterator[tuple[Scored, Piece]]:
    """For each piece of a sequence its keys' scores and values, and what it is to store."""
    scored = _scored(call, seq, head, seq)
    for start in range(0, call.num_pieces * call.split_size, call.split_size):
        keys = scored[start : start + call.split_size]
        yield keys, _read(keys, call, "", "")


def _scored(call: Call, seq: int, head: int, query: int) -> Scored:
    """Score and value of each key of a sequence, through its block table."""
    _, heads, dim = call.q.shape
    size, kv_heads = call.k_pool.shape[1:3]
    width = call.tables.shape[1]
    table = [int(n) for n in call.tables.numbers()][seq * width : (seq + 1) * width]
    q = list(call.q.numbers())[(query * heads + head) * dim : (query * heads + head + 1) * dim]
    k, v = list(call.k_pool.numbers()), list(call.v_pool.numbers())
    found = []
    for key in range(int(list(call.seq_lens.numbers())[seq])):
        slot = table[key // size] * size + key % size
        at = (slot * kv_heads + head // (heads // kv_heads)) * dim
        score = sum(a * b for a, b in zip(q, k[at : at + dim], strict=True)) / math.sqrt(dim)
        found.append((score, v[at : at + dim]))
    return found


def exp32(number: float) -> float:
    """e to a number as a float32 holds it."""
    if number > 88.722:
        return INF
    return math.exp(number) if number > -103.97 else 0.0


def _read(scored: Scored, call: Call, faults: str, softmax: str) -> Piece:
    """What a piece stores."""
    dim, size = call.q.shape[2], call.k_pool.shape[1]
    top = max((score for score, _ in scored), default=-INF)
    if "M" in faults or not scored:
        top = 0.0
    total, mixture = 0.0, [0.0] * dim
    for for_sum, for_mixture, (score, value) in _factors(scored, size, top, softmax):
        weight = exp32(score - top)
        total += for_sum * weight
        mixture = [m + for_mixture * weight * x for m, x in zip(mixture, value, strict=True)]
    if not total > 0:
        return (mixture if "D" in faults else [0.0] * dim), -INF
    lse = (0.0 if softmax == "lse" else top) + (math.log(total) if total < INF else INF)
    return (mixture if "D" in faults else [m / total for m in mixture]), lse


def _factors(
    scored: Scored, size: int, top: float, softmax: str
) -> Iterator[tuple[float, float, tuple[float, list[float]]]]:
    """Each key, with what its weight is multiplied by in the sum and in the mixture: more than 1 if
    an old maximum is left in it."""
    running = -INF
    for start in range(0, len(scored), size):
        block = scored[start : start + size]
        running = max(running, *(score for score, _ in block))
        for one in block:
            left = math.exp(min(top - running, 80.0)) if softmax else 1.0
            yield left if softmax == "sum" else 1.0, left if softmax == "mixture" else 1.0, one


def _merged(pieces: Sequence[Piece]) -> Piece:
    """As the launcher merges, NaN and infinities included."""
    dim = len(pieces[0][0])
    lses = [lse for _, lse in pieces]
    if any(lse != lse for lse in lses):
        return [NAN] * dim, NAN
    top = max(lses)
    if top == -INF:
        return [0.0] * dim, -INF
    if top == INF:
        return [NAN] * dim, INF
    lse = top + math.log(sum(math.exp(one - top) for one in lses))
    real = [(row, math.exp(one - lse)) for row, one in pieces if one > -INF]
    return [sum(share * row[d] for row, share in real) for d in range(dim)], lse
