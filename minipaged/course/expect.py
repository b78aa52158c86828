"""What an oracle may expect besides a plain value, and whether an answer is what was expected."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from minipaged.course import plain


class Raises(NamedTuple):
    """An exception of this class or of one derived from it."""

    kind: str


class Close(NamedTuple):
    """A number (int or float), or an array of the same dtype and shape, up to a tolerance."""

    value: Any
    relative: float = 1e-6
    absolute: float = 1e-9


class AtMost(NamedTuple):
    """A whole number up to a limit; what it counts stands in `unit`."""

    limit: int
    unit: str = "steps"


def matches(expected: Any, got: Any) -> bool:
    """Whether a decoded answer is what was expected; Raises never matches a value."""
    if type(expected) is Close:
        return _is_close(expected, got)
    if type(expected) is AtMost:
        return type(got) is int and got <= expected.limit
    return type(expected) is not Raises and plain.same(got, expected)


def has_type(expected: Any, got: Any) -> bool:
    """Whether an answer is at least of the right type."""
    if type(expected) is Close and type(expected.value) is not plain.Array:
        return type(got) in (int, float)
    if type(expected) is Close:
        return type(got) is plain.Array
    if type(expected) is AtMost:
        return type(got) is int
    return type(got) is type(expected)


def example(expected: Any) -> Any:
    """A plain value of the type that is expected."""
    if type(expected) is Close:
        return expected.value
    return expected.limit if type(expected) is AtMost else expected


def show(expected: Any) -> str:
    """What was expected, for the learner."""
    if type(expected) is Raises:
        return plain.with_article(expected.kind)
    if type(expected) is AtMost:
        return f"at most {expected.limit} {expected.unit}"
    if type(expected) is Close:
        return plain.show(expected.value)
    return plain.show(expected)


def _is_close(expected: Close, got: Any) -> bool:
    value = expected.value
    if type(value) is not plain.Array:
        return type(got) in (int, float) and _near(expected, value, got)
    if type(got) is not plain.Array or (got.dtype, got.shape) != (value.dtype, value.shape):
        return False
    pairs = zip(value.numbers(), got.numbers(), strict=True)
    return all(_near(expected, a, b) for a, b in pairs)


def _near(expected: Close, a: float, b: float) -> bool:
    both_nan = a != a and b != b
    return both_nan or math.isclose(a, b, rel_tol=expected.relative, abs_tol=expected.absolute)
