"""Plain data, exactly: all that passes between a learner's code and the verdict on it.

Plain are None, bool, int, float, str, list, tuple and dict, each of exactly that type. Anything
else, a subclass of int included, becomes Other: its class name is known and nothing more, so an
object that claims to equal everything has nobody to claim it to. The encoded form is what JSON
can hold; unlike JSON alone it keeps tuple and list apart. Standard library only: this runs in the
learner's process too.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

MAX_PARTS = 100_000  # values in one encoded value, nested ones included
MAX_DEPTH = 50
MAX_BITS = 1024
MAX_TEXT = 20_000


class Other(NamedTuple):
    """Stands for something that is not plain data; `what` is its class, or why it was refused."""

    what: str


def encode(value: Any) -> Any:
    """`value` as JSON can hold it. Never raises for a strange value. Cost: O(size), bounded."""
    return _Encoder().encode(value, 0)


class _Encoder:
    def __init__(self) -> None:
        self.parts = 0

    def encode(self, value: Any, depth: int) -> Any:
        kind = type(value)
        self.parts += 1
        if depth > MAX_DEPTH or self.parts > MAX_PARTS:
            return {"other": "a value too large to look at"}
        if value is None or kind is bool:
            return value
        if kind is int and value.bit_length() > MAX_BITS:
            return {"other": f"int of more than {MAX_BITS} bits"}
        if kind is str and len(value) > MAX_TEXT:
            return {"other": f"str of more than {MAX_TEXT} characters"}
        if kind is int or kind is str:
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is list or kind is tuple:
            return {kind.__name__: [self.encode(item, depth + 1) for item in value]}
        if kind is dict:
            pairs = [[self.encode(part, depth + 1) for part in pair] for pair in value.items()]
            return {"dict": pairs}
        return {"other": str(kind.__name__)[:80]}


def decode(data: Any) -> Any:
    """The value of an encoded form; ValueError if it is none (a hostile process may send that)."""
    if data is None or type(data) in (bool, int, float, str):
        return data
    if type(data) is not dict or len(data) != 1:
        raise ValueError("this is no encoded value")
    ((kind, content),) = data.items()
    if kind in ("other", "float") and type(content) is str:
        return Other(clean(content)) if kind == "other" else float(content)
    if type(content) is not list:
        raise ValueError("this is no encoded value")
    if kind == "dict":
        return _decode_dict(content)
    if kind not in ("list", "tuple"):
        raise ValueError(f"{kind!r} is no kind of plain value")
    items = [decode(item) for item in content]
    return items if kind == "list" else tuple(items)


def _decode_dict(content: list[Any]) -> dict[Any, Any]:
    try:
        return {decode(key): decode(value) for key, value in content}
    except TypeError:
        raise ValueError("a dict's content is not pairs with keys that can be keys") from None


def clean(text: str) -> str:
    """Text without control characters, which could take over a terminal."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def same(a: Any, b: Any) -> bool:
    """Equal, with equal types all the way down: 2 is neither 2.0 nor (with 1) True."""
    if type(a) is not type(b) or type(a) is Other:
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return set(map(_typed, a)) == set(map(_typed, b)) and all(same(a[k], b[k]) for k in a)
    return a == b or (a != a and b != b)


def _typed(value: Any) -> tuple[str, Any]:
    """A dict key together with its type."""
    return type(value).__name__, value


def show(value: Any, limit: int = 100) -> str:
    """How a value is printed for the learner, cut at `limit` characters."""
    text = f"an object of class {value.what}" if type(value) is Other else repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
