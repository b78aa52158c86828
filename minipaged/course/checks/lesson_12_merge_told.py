"""12.1: what is told about a wrong merge.

Each wrong idea is a way to merge the pieces of one row, in plain numbers; the one that gives the
learner's numbers is named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from minipaged.course import expect
from minipaged.course.checks.base import Close, Failure
from minipaged.course.plain import Array

Pieces = list[tuple[list[float], float]]
INF = math.inf


def _mixed(pieces: Pieces, weights: Sequence[float]) -> list[float]:
    """The pieces' outputs, times the weights, added; empty pieces left out."""
    real = [(row, w) for (row, lse), w in zip(pieces, weights, strict=True) if lse > -INF]
    return [math.fsum(w * row[d] for row, w in real) for d in range(len(pieces[0][0]))]


def _top(pieces: Pieces) -> float:
    return max(lse for _, lse in pieces)


def _exps(pieces: Pieces) -> list[float]:
    return [math.exp(lse - _top(pieces)) for _, lse in pieces]


def _right(pieces: Pieces) -> list[float]:
    exps = _exps(pieces)
    return _mixed(pieces, [e / sum(exps) for e in exps])


def _plain_mean(pieces: Pieces) -> list[float]:
    full = sum(lse > -INF for _, lse in pieces)
    return _mixed(pieces, [1 / full] * len(pieces))


def _all_pieces_mean(pieces: Pieces) -> list[float]:
    return _mixed(pieces, [1 / len(pieces)] * len(pieces))


def _by_lse(pieces: Pieces) -> list[float]:
    lses = [lse if lse > -INF else 0.0 for _, lse in pieces]
    return _mixed(pieces, [lse / sum(lses) for lse in lses])


def _largest(pieces: Pieces) -> list[float]:
    return max(pieces, key=lambda piece: piece[1])[0]


def _lse(pieces: Pieces) -> float:
    return _top(pieces) + math.log(sum(_exps(pieces)))


FIRST = (
    "The last piece is missing, or all but the first are. Do your loops go over num_pieces pieces? "
    "range(num_pieces) does."
)
Output = Callable[[Pieces], list[float]]
# most telling first
OUTPUTS: tuple[tuple[Output, str], ...] = (
    (
        _plain_mean,
        "That is the plain mean of the pieces, as if all counted the same. The LSE says how much "
        "each of them counts.",
    ),
    (
        _all_pieces_mean,
        "The pieces were added and divided by their number. The LSE says how much each counts.",
    ),
    (
        lambda pieces: _mixed(pieces, [1.0] * len(pieces)),
        "The pieces were added. Each is a mean already; the result is a mean of them.",
    ),
    (
        _by_lse,
        "The LSEs were used as weights. An LSE is a logarithm: the weight is its exponential.",
    ),
    (
        lambda pieces: _mixed(pieces, _exps(pieces)),
        "The weights do not add up to 1: divide by the sum of all of them.",
    ),
    (
        lambda pieces: _mixed(pieces, [math.exp(lse) for _, lse in pieces]),
        "The weights do not add up to 1: divide by the sum of all of them.",
    ),
    (
        _largest,
        "Only the piece with the highest LSE is in the result. The others count as well.",
    ),
    (lambda pieces: pieces[-1][0], "Only the last piece is in the result."),
    (lambda pieces: pieces[0][0], FIRST),
    (lambda pieces: _right(pieces[:-1]), FIRST),
    (lambda pieces: _right(pieces[1:]), "The first piece is missing."),
)
LSES: tuple[tuple[Callable[[Pieces], float], str], ...] = (
    (_top, "The largest LSE alone came back. The whole has the keys of all pieces."),
    (
        lambda pieces: sum(lse for _, lse in pieces if lse > -INF),
        "The LSEs were added. Logarithms add when numbers are multiplied; here the sums of "
        "exponentials are added.",
    ),
    (
        lambda pieces: math.log(sum(_exps(pieces))),
        "What was subtracted before the exponential is missing in the LSE: add it again.",
    ),
    (
        lambda pieces: sum(_exps(pieces)),
        "That is the sum of the exponentials. The LSE is its logarithm, and what was subtracted.",
    ),
    (
        lambda pieces: sum(math.exp(lse) for _, lse in pieces),
        "That is the sum of the exponentials. The LSE is its logarithm.",
    ),
    (
        lambda pieces: _top(pieces) + math.log2(sum(_exps(pieces))),
        "The logarithm was taken to the base 2. These LSEs are natural logarithms.",
    ),
)
ZERO_TIMES_NAN = (
    "NaN came out, and a piece without keys holds NaN. A weight of 0 is not enough, as 0 times NaN "
    "is NaN: such a row must not be multiplied at all."
)
NEVER_STORED = (
    "NaN came out of rows in which there is none: merge_pieces fills both results with NaN "
    "beforehand. Is something never stored, or stored at another place?"
)
ALL_EMPTY = (
    "Where no piece has keys there is nothing to subtract or to divide by (-inf - -inf is NaN): "
    "store zeros, and -inf as the LSE."
)
OVERFLOW = (
    "e to the 89 is more than a float32 holds, and an LSE may be higher. Subtract the largest LSE "
    "of the row before the exponential."
)
VANISHED = (
    "e to the -104 is 0 in a float32, and all LSEs of a row may be lower. Subtract the largest LSE "
    "of the row before the exponential."
)
HEADS = (
    "Rows were mixed up. The numbers of token t, piece s and head h begin at ((t · pieces + s) · "
    "heads + h) · HEAD_DIM in `parts`, and its LSE is number (t · pieces + s) · heads + h. "
    "tl.program_id(0) is the head, tl.program_id(1) the token."
)
BEYOND = (
    "Numbers of a neighbouring row came in, or went out. DIM is a power of two and may be larger "
    "than HEAD_DIM: mask the columns beyond HEAD_DIM, where you load and where you store."
)
INSIDE = (
    "An operation in the kernel failed. tl.load and tl.store take a pointer, a mask and (load) "
    "`other`; a pointer cannot be indexed with [ ]. In the interpreter a scalar that was compared "
    "cannot be joined with a mask by `&`: use it in tl.where or in an if."
)
CHANGED = "merge_pieces returns two tensors, (out, lse), as it was handed out."
RULE = (
    "Each piece counts with e to the (LSE - largest LSE), divided by the sum of these over all "
    "pieces; the LSE of the whole is the largest one plus the logarithm of that sum."
)


def explain(failure: Failure) -> str:
    """The wrong idea that gives these numbers, or the rule that was broken."""
    parts, part_lse = failure.case.operations[0].args
    if failure.number == 0 or failure.fault:
        return _of_fault(failure.fault) if failure.number == 0 else CHANGED
    got, expected = failure.got, failure.expected.value
    if type(got) is not Array or (got.dtype, got.shape) != (expected.dtype, expected.shape):
        return CHANGED
    wide = 1 if failure.number == 2 else parts.shape[3]
    rows = _first_wrong(failure.expected, _rows(expected, wide), _rows(got, wide))
    number, wrong = next(rows, (0, []))
    pieces = _pieces(parts, part_lse)
    return _of_row(pieces, number, wrong, wide, failure.number == 2)


def _of_fault(fault: str) -> str:
    return INSIDE if fault == "TypeError" else ""


def _rows(array: Array, wide: int) -> list[list[float]]:
    numbers = list(array.numbers())
    return [numbers[at : at + wide] for at in range(0, len(numbers), wide)]


def _first_wrong(
    close: Close, expected: list[list[float]], got: list[list[float]]
) -> Iterator[tuple[int, list[float]]]:
    for number, (right, row) in enumerate(zip(expected, got, strict=True)):
        if not all(_same(a, b, close) for a, b in zip(right, row, strict=True)):
            yield number, row


def _same(a: float, b: float, close: Close) -> bool:
    return expect.matches(Close(a, *close[1:]), b)


def _pieces(parts: Array, part_lse: Array) -> list[Pieces]:
    """Of each token and head."""
    _, count, heads, wide = parts.shape
    rows, lses = _rows(parts, wide), list(part_lse.numbers())
    found = []
    for at in range(0, len(rows), count * heads):
        for head in range(heads):
            places = range(at + head, at + count * heads, heads)
            found.append([(rows[place], lses[place]) for place in places])
    return found


def _of_row(pieces: list[Pieces], number: int, wrong: list[float], wide: int, is_lse: bool) -> str:
    """What is wrong with one row of the output, or one LSE."""
    own = pieces[number]
    if all(lse == -INF for _, lse in own):
        return ALL_EMPTY
    if not all(map(math.isfinite, wrong)):
        return _not_finite(own, wrong)
    if not is_lse and wide > 1 and (wide & (wide - 1)) and _is_partly(own, wrong):
        return BEYOND
    ideas: Any = LSES if is_lse else OUTPUTS
    for idea, said in ideas:
        if _gives(idea, own, wrong):
            return str(said)
    if any(lse < -90 for _, lse in own) and not is_lse and not any(wrong):
        return VANISHED
    others = [row for k, row in enumerate(pieces) if k != number]
    mixed_up = any(_gives(_right, row, wrong) for row in others)
    several = len(pieces) > 1 and len(own) > 1
    return HEADS if not is_lse and (mixed_up or several) else RULE


def _is_partly(own: Pieces, wrong: list[float]) -> bool:
    """Some of the columns are right."""
    right = _right(own)
    return any(
        math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-5) for a, b in zip(right, wrong, strict=True)
    )


def _not_finite(own: Pieces, wrong: list[float]) -> str:
    if any(lse > 88 for _, lse in own):
        return OVERFLOW
    if any(lse < -90 for _, lse in own if lse > -INF) and not any(lse == -INF for _, lse in own):
        return VANISHED
    return ZERO_TIMES_NAN if any(lse == -INF for _, lse in own) else NEVER_STORED


def _gives(idea: Callable[[Pieces], Any], pieces: Pieces, wrong: list[float]) -> bool:
    try:
        numbers = idea(pieces)
    except (OverflowError, ValueError, ZeroDivisionError, IndexError):
        return False
    numbers = numbers if isinstance(numbers, list) else [numbers]
    return all(
        math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-4) for a, b in zip(numbers, wrong, strict=False)
    )
