"""Refusals of impossible values: one line that names the value, the limit and what to do."""

from __future__ import annotations

from typing import Any


def require_int(name: str, value: object, low: int, advice: str, high: int | None = None) -> None:
    """Raise ValueError unless `value` is an int with low <= value (<= high)."""
    limit = f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}"
    ok = isinstance(value, int) and not isinstance(value, bool)
    if not ok or value < low or (high is not None and value > high):  # type: ignore[operator]
        raise ValueError(f"{name} is {value!r}, but it must be {limit}: {advice}")


def require_real(
    name: str, value: object, low: float, advice: str, high: float = float("inf")
) -> None:
    """Raise ValueError unless `value` is a finite number with low <= value <= high."""
    ok = isinstance(value, int | float) and not isinstance(value, bool)
    if not ok or not low <= value <= high or value == float("inf"):  # type: ignore[operator]
        top = "" if high == float("inf") else f" and at most {high:g}"
        raise ValueError(
            f"{name} is {value!r}, but it must be a number of at least {low:g}{top}: {advice}"
        )


def strings(name: str, value: object) -> tuple[str, ...]:
    """A string, or several, as a tuple; empty strings are refused, as they would always match."""
    items = (value,) if isinstance(value, str) else several(name, value)
    for item in items:
        if not isinstance(item, str) or not item:
            raise ValueError(f"{name} holds {item!r}, but it must hold non-empty strings")
    return items


def several(name: str, value: object) -> tuple[Any, ...]:
    """A collection as a tuple."""
    if not isinstance(value, list | tuple | set | frozenset):
        raise ValueError(f"{name} is {value!r}, but it must be a list, such as []")
    return tuple(value)


def require_type(name: str, value: object, kind: type) -> None:
    """Raise ValueError unless `value` is of this class."""
    if not isinstance(value, kind):
        raise ValueError(f"{name} is {value!r}, but it must be a {kind.__name__}")


def require_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    """Raise ValueError unless `value` is one of `choices`."""
    if value not in choices:
        raise ValueError(f"{name} is {value!r}: choose one of {', '.join(map(str, choices))}")
