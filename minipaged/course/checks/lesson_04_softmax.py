"""04.1 stable_softmax(scores): cases, an oracle that compares scores in pairs, known mistakes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

from minipaged.course import expect
from minipaged.course.checks.base import Check, Close, Failure
from minipaged.course.script import Case, Operation

INF = math.inf
HUGE = 1e300  # beyond it a whole number need not fit into a float


def visible() -> list[Case]:
    """The cases in the notebook."""
    logs = [math.log(n) for n in (1, 2, 4, 1)]
    return [
        _case("by hand", "The lesson's four scores: ln 1, ln 2, ln 4, ln 1.", logs),
        _case("one score", "A single key gets all the weight.", [5.0]),
        _case("from 1000 up", "The same four scores, each 1000 higher.", [1000 + s for s in logs]),
        _case("far below zero", "Two scores near -1000.", [-1000.0, -1001.0]),
        _case("far apart", "One score is 2000 above the other.", [0.0, 2000.0]),
        _case(
            "a masked key",
            "Two keys must not be read: their score is -inf.",
            [-INF, 0.0, -INF, math.log(3)],
        ),
        _case("all masked", "No key may be read: all weights are 0.", [-INF, -INF, -INF]),
        _case("no key", "No score at all, and so no weight.", []),
    ]


def hidden(seed: int) -> list[Case]:
    """12 lists of other lengths and heights."""
    rng = random.Random(f"04.1/{seed}")
    return [_hidden(rng, k) for k in range(12)]


def _hidden(rng: random.Random, k: int) -> Case:
    height, spread = (0.0, 900.0, -900.0, 5000.0)[k % 4], (1.0, 3.0, 2000.0)[k % 3]
    middle = [spread * rng.uniform(-1, 1) for _ in range(rng.randrange(1, 7))]
    scores = [height + s for s in (*middle, spread, -spread)]
    rng.shuffle(scores)
    for _ in range(k % 3):
        scores.insert(rng.randrange(len(scores) + 1), -INF)
    if k >= 10:
        scores = [-INF] * len(scores) if k == 10 else []
    return _case("hidden", "Other scores.", scores)


def _case(name: str, story: str, scores: list[float]) -> Case:
    items = [Operation((i,), "weights", how="item") for i in range(len(scores))]
    call, size = Operation((scores,), keep="weights"), Operation((), "weights", how="len")
    return Case(name, story, (call, size, *items))


def weights_of(scores: list[float]) -> list[float]:
    """Softmax by its meaning: a key's weight says how it compares with each of the others."""
    return [0.0 if s == -INF else 1 / sum(_exp(t - s) for t in scores) for s in scores]


def _exp(x: float) -> float:
    return math.exp(min(x, 700.0))


def _oracle(case: Case) -> list[Any]:
    (scores,) = case.operations[0].args
    return [len(scores), *(Close(weight) for weight in weights_of(scores))]


def _from_top(scores: list[float]) -> list[float]:
    top = max(scores)
    return [1.0 if s == top else math.exp(s - top) for s in scores]


def _shares(parts: list[float]) -> list[float]:
    total = sum(parts)
    return [part / total for part in parts]


# what a wrong idea gives, most telling first; one that cannot be computed is passed over
MISTAKES: tuple[tuple[Callable[[list[float]], list[float]], str], ...] = (
    (
        lambda scores: _shares([math.exp(min(s, 700.0)) for s in scores]),
        "Scores above some limit are cut off, and with them the differences between them. Large "
        "scores must be moved down together.",
    ),
    (
        _from_top,
        "These are the exponentials. Weights add up to 1: divide each by their sum.",
    ),
    (
        lambda scores: [math.exp(s) for s in scores],
        "These are the exponentials. Weights add up to 1: divide each by their sum.",
    ),
    (
        lambda scores: [s - max(scores) - math.log(sum(_from_top(scores))) for s in scores],
        "These are logarithms of the weights.",
    ),
    (
        lambda scores: _shares([2 ** (s - max(scores)) for s in scores]),
        "The base is e here, math.exp, not 2.",
    ),
    (
        lambda scores: _shares([math.exp(min(scores) - s) for s in scores]),
        "The weights go the wrong way: a higher score must get more.",
    ),
    (
        _shares,
        "The scores themselves were divided by their sum. The exponential of each comes first.",
    ),
    (
        lambda scores: [1 / len(scores)] * len(scores),
        "Keys that must not be read got a weight. With -inf for every score nothing is read, so "
        "all weights are 0.",
    ),
)
OVERFLOW = (
    "math.exp has no answer above 709. Subtract the largest score from each of them first: then "
    "no exponent is above 0, and the weights stay what they are."
)
NOT_THE_LARGEST = (
    "All exponentials came out as 0. Subtract the largest of the scores that there are, negative "
    "or not: then at least one exponential is 1."
)
ALL_MASKED = (
    "If no key may be read, the largest score is -inf and nothing can be subtracted or divided: "
    "give 0 for each key."
)
NO_KEY = "An empty list has no largest entry. Its answer is an empty list."
LENGTH = (
    "One weight for each score, in the order of the scores, in a list. A masked key's weight is 0."
)
NO_LIST = f"What came back has no length: is a `return` missing? {LENGTH}"
ONE_BY_ONE = "scores is a list. Compute with its numbers one by one, in a loop or a comprehension."
RULE = "The weight of a key is the exponential of its score, divided by the sum of all of them."


def explain(failure: Failure) -> str:
    """The wrong idea that gives this weight, or the rule that was broken."""
    (scores,) = failure.case.operations[0].args
    if failure.fault == "TypeError":
        return NO_LIST if failure.operation.how == "len" else ONE_BY_ONE
    if failure.fault:
        return _of_fault(scores, failure.fault)
    if failure.operation.how != "item":
        return LENGTH
    got, (index,) = failure.got, failure.operation.args
    if type(got) not in (int, float) or abs(got) > HUGE:
        return RULE
    if got != got:
        return ALL_MASKED if max(scores) == -INF else RULE
    for mistake, sentence in MISTAKES:
        try:
            wrong = mistake(scores)
        except (OverflowError, ZeroDivisionError, ValueError):
            continue
        if expect.matches(Close(wrong[index]), got):
            return sentence
    return RULE


def _of_fault(scores: list[float], fault: str) -> str:
    if not scores:
        return NO_KEY
    if max(scores) == -INF:
        return ALL_MASKED
    known = {"OverflowError": OVERFLOW, "ZeroDivisionError": NOT_THE_LARGEST, "IndexError": LENGTH}
    return known.get(fault, "")


CHECK = Check(visible, hidden, _oracle, explain=explain)
