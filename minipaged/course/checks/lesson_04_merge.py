"""04.2 merge(a, b): cases, an oracle that asks for one half's share, known mistakes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

from minipaged.course import expect
from minipaged.course.checks.base import Check, Close, Failure
from minipaged.course.script import Case, Operation

Part = tuple[list[float], float]
INF, NAN = math.inf, math.nan


def visible() -> list[Case]:
    """The cases in the notebook."""
    return [
        _case(
            "by hand",
            "The exponentials of one half add up to 6, those of the other to 2.",
            ([2.0, 0.0], math.log(6)),
            ([6.0, 4.0], math.log(2)),
        ),
        _case(
            "the other way",
            "The same two halves.",
            ([6.0, 4.0], math.log(2)),
            ([2.0, 0.0], math.log(6)),
        ),
        _case(
            "an empty half",
            "The second half has no keys: its LSE is -inf, and its output 0/0, which is NaN.",
            ([3.0], math.log(2)),
            ([NAN], -INF),
        ),
        _case("empty first", "The first half has no keys.", ([NAN, NAN], -INF), ([1.0, 7.0], -3.0)),
        _case("both empty", "Nothing to read at all.", ([NAN, NAN], -INF), ([NAN, NAN], -INF)),
        _case(
            "from 1000 up",
            "The same as by hand, every score 1000 higher.",
            ([2.0, 0.0], 1000 + math.log(6)),
            ([6.0, 4.0], 1000 + math.log(2)),
        ),
        _case("far below zero", "Two LSEs near -1000.", ([8.0], -1000.0), ([4.0], -1000.0)),
        _case("far apart", "One LSE is 800 above the other.", ([1.0], -800.0), ([-1.0], 0.0)),
    ]


def hidden(seed: int) -> list[Case]:
    """12 pairs of other halves."""
    rng = random.Random(f"04.2/{seed}")
    return [_hidden(rng, k) for k in range(12)]


def _hidden(rng: random.Random, k: int) -> Case:
    height, size = (0.0, 2000.0, -2000.0)[k % 3], 1 + k % 4
    a, b = ((_numbers(rng, size), height + rng.uniform(-4, 4)) for _ in range(2))
    if k % 5 == 4 or k == 10:
        a = ([NAN] * size, -INF)
    if k == 6 or k == 10:
        b = ([NAN] * size, -INF)
    return _case("hidden", "Two other halves.", a, b)


def _numbers(rng: random.Random, size: int) -> list[float]:
    return [round(rng.uniform(-9, 9), 3) for _ in range(size)]


def _case(name: str, story: str, a: Part, b: Part) -> Case:
    items = [Operation((i,), "output", how="item") for i in range(len(a[0]))]
    operations = (
        Operation((a, b), keep="merged"),
        Operation((0,), "merged", keep="output", how="item"),
        Operation((), "output", how="len"),
        *items,
        Operation((1,), "merged", how="item"),
    )
    return Case(name, story, operations)


def merged(a: Part, b: Part) -> Part:
    """By the share of the whole that belongs to b: 1 / (1 + e^(lse_a - lse_b))."""
    (one, lse_a), (other, lse_b) = a, b
    if lse_b == -INF:
        return (list(one), lse_a) if lse_a > -INF else ([0.0] * len(one), -INF)
    if lse_a == -INF:
        return list(other), lse_b
    low, high = sorted((lse_a, lse_b))
    share = 1 / (1 + math.exp(min(lse_a - lse_b, 700.0)))
    output = [x + share * (y - x) for x, y in zip(one, other, strict=True)]
    return output, high + math.log1p(math.exp(low - high))


def _oracle(case: Case) -> list[Any]:
    output, lse = merged(*case.operations[0].args)
    return [len(output), *map(Close, output), Close(lse)]


def _mixed(a: Part, b: Part, x: float, y: float) -> list[float]:
    """Both outputs, times x and times y."""
    return [x * p + y * q for p, q in zip(a[0], b[0], strict=True)]


def _by_exp(a: Part, b: Part) -> list[float]:
    return _mixed(a, b, math.exp(a[1]), math.exp(b[1]))


def _larger(a: Part, b: Part) -> list[float]:
    return list(a[0] if a[1] > b[1] else b[0])


def _swapped(a: Part, b: Part) -> list[float]:
    return merged((a[0], b[1]), (b[0], a[1]))[0]


# the output, then the LSE, of a wrong idea, most telling first; what cannot be computed is left out
OUTPUTS: tuple[tuple[Callable[[Part, Part], list[float]], str], ...] = (
    (
        lambda a, b: _mixed(a, b, 0.5, 0.5),
        "That is the plain mean of the outputs, as if both halves weighed the same. The LSE says "
        "how much each of them counts.",
    ),
    (
        lambda a, b: _mixed(a, b, 1.0, 1.0),
        "The outputs were added. Each is a mean already; the result is a mean of the two.",
    ),
    (
        lambda a, b: _mixed(a, b, a[1] / (a[1] + b[1]), b[1] / (a[1] + b[1])),
        "The LSEs were used as weights. An LSE is a logarithm: the weight is its exponential.",
    ),
    (
        _swapped,
        "The weights have changed places: each output goes with its own LSE.",
    ),
    (
        _by_exp,
        "The weights do not add up to 1: divide by the sum of both exponentials.",
    ),
    (
        _larger,
        "Only the half with the higher LSE is in the result. The other counts as well, with its "
        "share.",
    ),
)
LSES: tuple[tuple[Callable[[float, float], float], str], ...] = (
    (
        lambda a, b: a + b,
        "The LSEs were added. Logarithms add when numbers are multiplied; here the two sums of "
        "exponentials are added.",
    ),
    (max, "The larger LSE alone came back. The merged half has the keys of both."),
    (
        lambda a, b: (a + b) / 2,
        "The mean of the LSEs came back. The two sums of exponentials are added.",
    ),
    (
        lambda a, b: math.exp(a) + math.exp(b),
        "That is the sum of the exponentials. The LSE is its logarithm.",
    ),
    (
        lambda a, b: math.log(math.exp(a - max(a, b)) + math.exp(b - max(a, b))),
        "What was subtracted before the exponential is missing in the LSE: add it again.",
    ),
)
ZERO_TIMES_NAN = (
    "The output of an empty half is not to be used at all, not even times 0: 0 times NaN is NaN. "
    "Ask whether its LSE is -inf before you multiply."
)
BOTH_EMPTY = (
    "With two empty halves there is nothing to subtract, to divide or to take a logarithm of "
    "(-inf - -inf is NaN): return zeros, as many as one output has numbers, and -inf."
)
OVERFLOW = (
    "math.exp has no answer above 709, and an LSE may be higher. Subtract the larger LSE from both "
    "before the exponential."
)
VANISHED = (
    "Both exponentials came out as 0: e to the -1000 is too small for a number. Subtract the "
    "larger LSE from both first."
)
SHAPE = (
    "merge returns a tuple of two: first the output, a list as long as one of the outputs, then "
    "the LSE."
)
RETURN = f"Is a `return` missing? {SHAPE}"
PAIRS = (
    "Each half is a pair: an output, which is a list of numbers, and its LSE, which is one number."
)
RULE = (
    "Each output counts with the exponential of its LSE, divided by the sum of both; the LSE of "
    "the whole is the logarithm of that sum."
)


def explain(failure: Failure) -> str:
    """The wrong idea that gives this number, or the rule that was broken."""
    a, b = failure.case.operations[0].args
    empty = (a[1] == -INF) + (b[1] == -INF)
    if failure.fault == "TypeError":
        return {0: PAIRS, 1: RETURN}.get(failure.number, SHAPE)
    if failure.fault:
        return _of_fault(empty, failure.fault)
    operation, got = failure.operation, failure.got
    if operation.how == "len" or type(got) not in (int, float):
        return SHAPE if operation.how == "len" else ""
    if got != got:
        return ("", ZERO_TIMES_NAN, BOTH_EMPTY)[empty]
    if empty == 2:
        return BOTH_EMPTY
    if operation.target == "output":
        wrong = ((lambda f=f: f(a, b)[operation.args[0]], said) for f, said in OUTPUTS)
    else:
        wrong = ((lambda f=f: f(a[1], b[1]), said) for f, said in LSES)
    return next((said for number, said in wrong if _gives(number, got)), RULE)


def _gives(number: Callable[[], float], got: float) -> bool:
    try:
        return expect.matches(Close(number()), got)
    except (OverflowError, ValueError, ZeroDivisionError):
        return False


def _of_fault(empty: int, fault: str) -> str:
    if empty == 2 and fault in ("ValueError", "ZeroDivisionError"):
        return BOTH_EMPTY
    known = {"OverflowError": OVERFLOW, "ValueError": VANISHED, "ZeroDivisionError": VANISHED}
    return known.get(fault, SHAPE if fault == "IndexError" else "")


CHECK = Check(visible, hidden, _oracle, explain=explain)
