"""05.3 beam_step(beams, logprobs, width): the best continuations of all beams together.

All numbers are multiples of 1/8, so that sums are exact in whatever order they are formed, and
equal sums occur.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from minipaged.course import plain
from minipaged.course.checks.base import Check, Failure, Row
from minipaged.course.script import Case, Operation

Beams = list[tuple[list[int], float]]
Logprobs = list[dict[int, float]]
Step = list[tuple[int, int, float]]


def visible() -> list[Case]:
    """Each rule once. Tokens 1, 2 and 3 are the a, b and c of the lesson."""
    return [
        _case(
            "the first step",
            "One beam, the prompt; the two best of its three continuations.",
            ([([], 0.0)], [{1: -0.5, 2: -1.0, 3: -4.0}], 2),
        ),
        _case(
            "places change",
            "Each beam goes on once, and the second one overtakes the first.",
            (
                [([1], -0.5), ([2], -1.0)],
                [{1: -1.5, 2: -1.25, 3: -2.0}, {1: -0.25, 2: -2.0, 3: -3.0}],
                2,
            ),
        ),
        _case(
            "one beam twice",
            "The first beam goes on with two tokens, the second one with none.",
            (
                [([2, 1], -1.25), ([1, 2], -1.75)],
                [{1: -3.0, 2: -0.5, 3: -1.25}, {1: -1.0, 2: -1.5, 3: -2.0}],
                2,
            ),
        ),
        _case(
            "sure, but too late",
            "The likeliest token of all belongs to a beam that is far behind.",
            ([([4], -0.5), ([5], -6.0)], [{1: -1.0, 2: -1.5}, {1: -0.125, 2: -3.0}], 2),
        ),
        _case(
            "equal sums",
            "Four continuations are as good as each other: the earlier beam first, then the "
            "smaller token.",
            ([([4], -1.0), ([5], -0.5)], [{10: -0.5, 9: -0.5}, {3: -1.0, 2: -1.0}], 3),
        ),
        _case(
            "fewer than wanted",
            "There are three continuations in all, and room for four.",
            ([([1], -1.0), ([2], -2.0)], [{1: -0.5}, {1: -0.25, 2: -0.5}], 4),
        ),
        _case(
            "a beam without continuation",
            "The second beam has nothing to go on with.",
            ([([1], -1.0), ([2], -0.5), ([3], -2.0)], [{7: -1.0, 8: -0.5}, {}, {7: -0.25}], 3),
        ),
        _case(
            "width 1",
            "A single beam goes on, and it need not be the one that led.",
            ([([1], -0.5), ([2], -0.75)], [{1: -1.0, 2: -1.5}, {1: -0.5}], 1),
        ),
    ]


def hidden(seed: int) -> list[Case]:
    """12 further steps of other widths, with equal sums among them."""
    rng = random.Random(f"05.3/{seed}")
    return [_random_case(rng, width) for width in (1, 2, 2, 3, 3, 4, 4, 5, 6, 8, 8, 16)]


def _random_case(rng: random.Random, width: int) -> Case:
    beams: Beams = [([rng.randrange(50)], _number(rng, 24)) for _ in range(width)]
    rows = [
        {token: _number(rng, 16) for token in rng.sample(range(100), rng.randrange(6))}
        for _ in beams
    ]
    return _case("hidden", "A step of another width.", (beams, rows, width))


def _number(rng: random.Random, eighths: int) -> float:
    return -rng.randrange(1, eighths) / 8


def _case(name: str, story: str, args: tuple[Beams, Logprobs, int]) -> Case:
    return Case(name, story, (Operation(args),))


def _candidates(beams: Beams, logprobs: Logprobs) -> Step:
    return [
        (parent, token, beams[parent][1] + row[token])
        for parent, row in enumerate(logprobs)
        for token in row
    ]


def best(beams: Beams, logprobs: Logprobs, width: int) -> Step:
    """One after the other, by looking through all that are left."""
    left = _candidates(beams, logprobs)
    chosen: Step = []
    while left and len(chosen) < width:
        top = max(total for _, _, total in left)
        chosen.append(min(one for one in left if one[2] == top))
        left.remove(chosen[-1])
    return chosen


def _oracle(case: Case) -> list[Any]:
    return [best(*operation.args) for operation in case.operations]


def _sorted(key: Callable[[tuple[int, int, float]], Any]) -> Callable[..., Any]:
    """All continuations sorted by another key."""
    return lambda beams, rows, width: sorted(_candidates(beams, rows), key=key)[:width]


def _own(beams: Beams, rows: Logprobs, width: int) -> Any:
    """By the new token's number alone."""

    def key(one: tuple[int, int, float]) -> tuple[float, int, int]:
        return -rows[one[0]][one[1]], one[0], one[1]

    return sorted(_candidates(beams, rows), key=key)[:width]


def _own_returned(beams: Beams, rows: Logprobs, width: int) -> Any:
    """The new token's number in place of the sum, and sorted by it."""
    empty = [(tokens, 0.0) for tokens, _ in beams]
    return best(empty, rows, width)


def _product(beams: Beams, rows: Logprobs, width: int) -> Any:
    """The product of both numbers in place of their sum."""
    found = [(p, t, beams[p][1] * rows[p][t]) for p, t, _ in _candidates(beams, rows)]
    return sorted(found, key=_by_sum)[:width]


def _from_one(beams: Beams, rows: Logprobs, width: int) -> Any:
    """Right, but for the parents' numbers."""
    return [(p + 1, token, total) for p, token, total in best(beams, rows, width)]


def _one_each(beams: Beams, rows: Logprobs, width: int) -> Any:
    """The best continuation of each beam."""
    found = [one for k in range(len(beams)) for one in _of(beams, rows, k, 1)]
    return sorted(found, key=_by_sum)[:width]


def _of(beams: Beams, rows: Logprobs, parent: int, count: int) -> Step:
    return [one for one in best(beams, rows, 10**6) if one[0] == parent][:count]


def _width_each(beams: Beams, rows: Logprobs, width: int) -> Any:
    """So many of each beam."""
    return [one for k in range(len(beams)) for one in _of(beams, rows, k, width)]


def _by_sum(one: tuple[int, int, float]) -> tuple[float, int, int]:
    return -one[2], one[0], one[1]


MISTAKES: tuple[tuple[Callable[..., Any], str], ...] = (
    (
        _sorted(lambda one: (one[2], one[0], one[1])),
        "The worst come first. Log-probabilities are negative: the nearer to 0, the likelier.",
    ),
    (
        _own,
        "The continuations were compared by the new token's log-probability alone. What counts is "
        "the sum: that of the beam so far and that of the token.",
    ),
    (
        _own_returned,
        "The beam's own sum is missing: add the token's log-probability to it.",
    ),
    (
        _product,
        "The log-probabilities were multiplied. Probabilities are multiplied; their logarithms are "
        "added.",
    ),
    (
        _from_one,
        "The parents were counted from 1. A parent is the index of its beam in `beams`, from 0 on.",
    ),
    (
        _one_each,
        "One continuation was taken of each beam. They all compete together: a beam may go on "
        "twice, and another one not at all.",
    ),
    (
        _width_each,
        "`width` continuations were taken of each beam. It is `width` in all.",
    ),
    (
        lambda beams, rows, width: best(beams, rows, 10**6),
        "All continuations came back. Keep the best `width`.",
    ),
    (
        _sorted(lambda one: -one[2]),
        "Equal sums are left in the order of the dict. Of two tokens of one beam the smaller comes "
        "first.",
    ),
    (
        _sorted(lambda one: (-one[2], one[1], one[0])),
        "Of equal sums the one of the earlier beam comes first; the token decides only within a "
        "beam.",
    ),
    (
        _sorted(lambda one: (-one[2], -one[0], -one[1])),
        "Of equal sums the earlier beam and the smaller token come first. Was everything sorted "
        "in descending order?",
    ),
    (
        lambda beams, rows, width: sorted(best(beams, rows, width)),
        "The right ones, but in the order of their parents. The best comes first.",
    ),
)
RULE = (
    "The continuations of all beams compete together, by their sums. The best `width` are left, "
    "best first; of equal ones the earlier beam's, then the smaller token's."
)
OTHER_ORDER = (
    "The triple is in another order: the parent's index first, then the token, and the sum last."
)
BEAMS_BACK = (
    "Those are the beams themselves. Asked for is how they come about: the parent's index, the new "
    "token and the sum."
)


def _begins_with(kind: type, rows: Sequence[Row]) -> bool:
    """Some tuple that came back has this kind of thing first, where the parent belongs."""
    lists = [row.got for row in rows if type(row.got) is list]
    return any(
        type(one) is tuple and type(next(iter(one), 0)) is kind for got in lists for one in got
    )


def diagnose(rows: Sequence[Row]) -> str:
    """What came in place of triples, else the misconception that gives all of the answers."""
    for kind, sentence in ((float, OTHER_ORDER), (list, BEAMS_BACK)):
        if _begins_with(kind, rows):
            return sentence
    for mistake, sentence in MISTAKES:
        if all(plain.same(mistake(*row.args), row.got) for row in rows):
            return sentence
    return ""


def explain(failure: Failure) -> str:
    """What holds in every step."""
    return RULE


def picture(case: Case, number: int) -> str:
    """All continuations with their sums, by beam."""
    beams, rows, _ = case.operations[0].args
    lines = []
    for parent, (row, (_, total)) in enumerate(zip(rows, beams, strict=True)):
        sums = "   ".join(f"{token}: {total + logprob:g}" for token, logprob in row.items())
        lines.append(f"beam {parent} at {total:g}, sums by token   {sums or 'none'}")
    return "\n".join(lines)


CHECK = Check(visible, hidden, _oracle, diagnose, explain, picture)
