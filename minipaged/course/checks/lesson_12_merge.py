"""12.1 merge_pieces(parts, part_lse): the cases, and an oracle that joins two pieces at a time."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from minipaged.course.checks.base import Check, Close
from minipaged.course.checks.lesson_12_merge_told import explain
from minipaged.course.plain import Array
from minipaged.course.script import Case, Operation

INF, NAN = math.inf, math.nan
OUTPUT, LSE = (1e-4, 1e-5), (1e-5, 1e-4)  # relative and absolute: float32, LSEs up to thousands
Piece = tuple[list[float], float]


class Shape(NamedTuple):
    """Of `parts`."""

    tokens: int
    pieces: int
    heads: int
    head_dim: int


def visible() -> list[Case]:
    """The cases in the notebook."""
    return [*_sums(), *_empty(), *_places()]


def _sums() -> Iterator[Case]:
    """How much each piece counts."""
    log = math.log
    yield _one(
        "by hand",
        "The lesson's two halves: one has read 16/3 with the LSE ln 3, the other 4.8 with ln 5.",
        [([16 / 3], log(3)), ([4.8], log(5))],
    )
    yield _one("equal halves", "Both count the same.", [([2.0, 0.0], 1.5), ([6.0, 4.0], 1.5)])
    yield _one("one piece", "There is nothing to merge: it comes out as it is.", [([3.0], -2.0)])
    yield _one(
        "five pieces",
        "The exponentials of the LSEs are 1, 2, 3, 4 and 6.",
        [([float(10 * k)], log(n)) for k, n in enumerate((1, 2, 3, 4, 6))],
    )
    yield _one(
        "from 1000 up",
        "By hand once more, every score 1000 higher.",
        [([16 / 3], 1000 + log(3)), ([4.8], 1000 + log(5))],
    )
    yield _one("far below zero", "Two LSEs of -1000.", [([8.0], -1000.0), ([4.0], -1000.0)])
    yield _one("far apart", "One LSE is 800 above the other.", [([1.0], -800.0), ([-1.0], 0.0)])


def _empty() -> Iterator[Case]:
    """Pieces without keys."""
    yield _one(
        "an empty piece",
        "The second piece has no keys: its LSE is -inf, and its row holds NaN.",
        [([3.0], math.log(2)), ([NAN], -INF)],
    )
    yield _one(
        "the first is empty", "Only the second has keys.", [([NAN, NAN], -INF), ([1.0, 7.0], -3.0)]
    )
    yield _one(
        "left as it was",
        "A piece without keys; its row holds 9, from somebody before.",
        [([1.0], 0.0), ([9.0], -INF), ([3.0], 0.0)],
    )
    yield _one("all are empty", "Nothing to read at all.", [([NAN], -INF), ([NAN], -INF)])


def _places() -> Iterator[Case]:
    """Which numbers belong together."""
    # never more heads than tokens: program ids that are exchanged stay inside the tensors then
    shape = Shape(3, 2, 2, 1)
    rows = [(token, head) for token in range(3) for _ in range(2) for head in range(2)]
    yield _case(
        "by number",
        "Tokens 0 to 2, heads 0 and 1. What was read is 100 · token + 10 · head; all LSEs are 0.",
        shape,
        [([100.0 * token + 10 * head], 0.0) for token, head in rows],
    )
    yield _case(
        "each row its own",
        "Two tokens, two heads, two pieces. In each row one LSE is 800 above the other: the second "
        "piece's, the first's, the first's, the second's.",
        Shape(2, 2, 2, 1),
        [([float(k)], lse) for k, lse in enumerate((-800.0, 0, 0, -800.0, 0, -800.0, -800.0, 0))],
    )
    yield _drawn("three columns", "head_dim is 3, so DIM is 4.", Shape(2, 3, 2, 3), seed=5)


def hidden(seed: int) -> list[Case]:
    """5 of other shapes, with empty pieces."""
    rng = random.Random(f"12.1/{seed}")
    return [_hidden(rng, k) for k in range(5)]


def _hidden(rng: random.Random, k: int) -> Case:
    tokens, pieces, heads = rng.choice(((2, 3, 1), (1, 4, 1), (2, 2, 1)))
    if k < 2:
        tokens, pieces, heads = 3 - k, 2, 2
    shape = Shape(tokens, pieces, heads, (3, 5, 1, 2, 6)[k])
    height = (0.0, 2000.0, -2000.0, 0.0)[k % 4]
    return _drawn("hidden", "Another shape.", shape, seed=rng.random(), height=height, empty=k % 3)


def _drawn(
    name: str, story: str, shape: Shape, *, seed: float, height: float = 0.0, empty: int = 0
) -> Case:
    """Random pieces, about a third of them empty if `empty`; 2: all of the first row are."""
    rng = random.Random(seed)
    pieces: list[Piece] = []
    for number in range(shape.tokens * shape.pieces * shape.heads):
        row = [round(rng.uniform(-9, 9), 3) for _ in range(shape.head_dim)]
        is_empty = empty and rng.random() < 0.35
        token, head = divmod(number, shape.heads)
        is_empty = is_empty or (empty == 2 and token < shape.pieces and head == 0)
        lse = round(height + rng.uniform(-3, 3), 3)
        pieces.append(([NAN] * shape.head_dim, -INF) if is_empty else (row, lse))
    return _case(name, story, shape, pieces)


def _one(name: str, story: str, pieces: list[Piece]) -> Case:
    """One token and one head."""
    return _case(name, story, Shape(1, len(pieces), 1, len(pieces[0][0])), pieces)


def _case(name: str, story: str, shape: Shape, pieces: Sequence[Piece]) -> Case:
    parts = Array.of("float32", shape, [number for row, _ in pieces for number in row])
    part_lse = Array.of("float32", shape[:3], [lse for _, lse in pieces])
    operations = (
        Operation((parts, part_lse), keep="merged"),
        Operation((0,), "merged", how="item"),
        Operation((1,), "merged", how="item"),
    )
    return Case(name, story, operations)


def joined(a: Piece, b: Piece) -> Piece:
    """Two pieces as one, by the share of the whole that belongs to b."""
    (one, lse_a), (other, lse_b) = a, b
    if lse_b == -INF or lse_a == -INF:
        return a if lse_b == -INF else b
    low, high = sorted((lse_a, lse_b))
    share = 1 / (1 + math.exp(min(lse_a - lse_b, 700.0)))
    mixed = [x + share * (y - x) for x, y in zip(one, other, strict=True)]
    return mixed, high + math.log1p(math.exp(low - high))


def rows_of(parts: Array, part_lse: Array) -> Iterator[list[Piece]]:
    """The pieces of each token and head, token by token."""
    shape, numbers, lses = Shape(*parts.shape), list(parts.numbers()), list(part_lse.numbers())
    for token in range(shape.tokens):
        for head in range(shape.heads):
            places = [
                (token * shape.pieces + piece) * shape.heads + head for piece in range(shape.pieces)
            ]
            d = shape.head_dim
            yield [(numbers[at * d : (at + 1) * d], lses[at]) for at in places]


def _oracle(case: Case) -> list[Any]:
    parts, part_lse = case.operations[0].args
    shape = Shape(*parts.shape)
    nothing: Piece = ([0.0] * shape.head_dim, -INF)
    merged = [functools.reduce(joined, row, nothing) for row in rows_of(parts, part_lse)]
    merged = [nothing if lse == -INF else (row, lse) for row, lse in merged]
    out = [number for row, _ in merged for number in row]
    return [
        Close(Array.of("float32", (shape.tokens, shape.heads, shape.head_dim), out), *OUTPUT),
        Close(Array.of("float32", (shape.tokens, shape.heads), [lse for _, lse in merged]), *LSE),
    ]


def picture(case: Case, number: int) -> str:
    """The pieces of the first token and head, with the share that each is to have."""
    if number == 0:
        return ""
    pieces = next(rows_of(*case.operations[0].args))
    whole = functools.reduce(joined, pieces)[1]
    lines = ["token 0, head 0:"]
    for place, (row, lse) in enumerate(pieces):
        share = math.exp(lse - whole) if lse > -INF else 0.0
        read = " ".join(f"{x:.4g}" for x in row)
        lines.append(f"  piece {place}: LSE {lse:.4g}, share {share:.4g}, has read {read}")
    return "\n".join(lines)


CHECK = Check(visible, hidden, _oracle, explain=explain, picture=picture, tensors=True)
