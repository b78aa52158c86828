"""Plain data, exactly: all that passes between a learner's code and the verdict on it.

Plain are None, bool, int, float, str, list, tuple and dict, each of exactly that type, and Array,
which a tensor becomes. Anything else, a subclass of int included, becomes Other: its class name is
known and nothing more, so an object that claims to equal everything has nobody to claim it to. The
encoded form is what JSON can hold; unlike JSON alone it keeps tuple and list apart. Standard
library only: this runs in the learner's process too.
"""

from __future__ import annotations

import base64
import itertools
import math
import struct
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

MAX_PARTS = 100_000  # values in one encoded value, nested ones included
MAX_DEPTH = 50
MAX_BITS = 1000  # so that every int that is looked at fits into a float
MAX_TEXT = 20_000
MAX_BYTES = 2**22  # of one array


class Other(NamedTuple):
    """Stands for something that is not plain data; `what` is its class, or why it was refused."""

    what: str


class Kept(NamedTuple):
    """Stands, among the arguments of a script, for what was kept under `name`."""

    name: str


# how struct packs a dtype; bfloat16 is the upper half of a float32
_PACKED = {
    **{"float64": "d", "float32": "f", "float16": "e", "bfloat16": "H"},
    **{"int64": "q", "int32": "i", "bool": "?", "uint8": "B"},
}


class Array(NamedTuple):
    """A tensor as raw bytes, row by row, little-endian. dtype is torch's name without "torch."."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @classmethod
    def of(cls, dtype: str, shape: Iterable[int], numbers: Iterable[float]) -> Array:
        """An array of these numbers; no bfloat16."""
        values = list(numbers)
        return cls(dtype, tuple(shape), struct.pack(f"<{len(values)}{_PACKED[dtype]}", *values))

    def numbers(self) -> Iterator[float]:
        """The elements in order."""
        for (number,) in struct.iter_unpack("<" + _PACKED[self.dtype], self.data):
            if self.dtype == "bfloat16":
                (number,) = struct.unpack("<f", struct.pack("<I", number << 16))
            yield number

    def __repr__(self) -> str:
        few = ", ".join(f"{number:g}" for number in itertools.islice(self.numbers(), 8))
        more = ", …" if math.prod(self.shape) > 8 else ""
        return f"tensor {self.dtype} {list(self.shape)}: {few}{more}"


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
        if kind is Kept:
            return {"kept": value.name}
        array = value if kind is Array else _from_tensor(value)
        if array is not None and len(array.data) <= MAX_BYTES:
            text = base64.b64encode(array.data).decode()
            return {"array": [array.dtype, list(array.shape), text]}
        return {"other": class_name(kind)[:80]}


def class_name(kind: type) -> str:
    """The name that a class was given, whatever its metaclass says of it."""
    return type.__dict__["__name__"].__get__(kind)


def decode(data: Any) -> Any:
    """The value of an encoded form; ValueError if it is none (a hostile process may send that)."""
    if type(data) is int and data.bit_length() > MAX_BITS:
        raise ValueError(f"an int of more than {MAX_BITS} bits is no encoded value")
    if data is None or type(data) in (bool, int, float, str):
        return data
    if type(data) is not dict or len(data) != 1:
        raise ValueError("this is no encoded value")
    ((kind, content),) = data.items()
    if kind in ("other", "float", "kept") and type(content) is str:
        if kind == "kept":
            return Kept(content)
        return Other(clean(content)) if kind == "other" else float(content)
    if type(content) is not list:
        raise ValueError("this is no encoded value")
    if kind == "dict":
        return _decode_dict(content)
    if kind == "array":
        return _decode_array(content)
    if kind not in ("list", "tuple"):
        raise ValueError(f"{kind!r} is no kind of plain value")
    items = [decode(item) for item in content]
    return items if kind == "list" else tuple(items)


def _decode_dict(content: list[Any]) -> dict[Any, Any]:
    try:
        return {decode(key): decode(value) for key, value in content}
    except TypeError:
        raise ValueError("a dict's content is not pairs with keys that can be keys") from None


def _decode_array(content: list[Any]) -> Array:
    try:
        dtype, shape, text = content
        array = Array(dtype, tuple(shape), base64.b64decode(text, validate=True))
        size = struct.calcsize(_PACKED[dtype])
        is_right = all(type(n) is int and n >= 0 for n in array.shape)
    except (KeyError, TypeError, ValueError):
        raise ValueError("this is no encoded array") from None
    if not is_right or math.prod(array.shape) * size != len(array.data):
        raise ValueError("an array's bytes do not fit its shape")
    return array


def _from_tensor(value: Any) -> Array | None:
    """The array of a tensor, None for anything else; loads no torch.

    None also for a tensor whose numbers cannot be had, such as one on the device "meta".
    """
    torch = sys.modules.get("torch")
    try:
        if torch is None or type(value) is not torch.Tensor:
            return None
        dtype = str(value.dtype).removeprefix("torch.")
        if dtype not in _PACKED or value.layout is not torch.strided:
            return None
        flat = value.detach().cpu().contiguous().reshape(-1)
        return Array(dtype, tuple(value.shape), flat.view(torch.uint8).numpy().tobytes())
    except Exception:
        return None


_device = "cpu"


def put_tensors_on(device: str) -> None:
    """From now on to_tensor makes its tensors on this device."""
    global _device
    _device = device


def to_tensor(array: Array) -> Any:
    """The array as a tensor of its own memory; imports torch."""
    import torch

    dtype = getattr(torch, array.dtype)
    if not array.data:
        return torch.empty(array.shape, dtype=dtype, device=_device)
    tensor = torch.frombuffer(bytearray(array.data), dtype=dtype).reshape(array.shape)
    return tensor if _device == "cpu" else tensor.to(_device)


def with_article(word: str) -> str:
    """ "a ValueError", "an IndexError"."""
    return f"{'an' if word[:1].lower() in 'aeiou' else 'a'} {word}"


def clean(text: str) -> str:
    """Text without control characters, which could take over a terminal."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def same(a: Any, b: Any) -> bool:
    """Equal, with equal types all the way down: 2 is neither 2.0 nor (with 1) True."""
    if type(a) is not type(b) or type(a) is Other:
        return False
    if type(a) in (list, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return set(map(_typed, a)) == set(map(_typed, b)) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, Array):
        pairs = zip(a.numbers(), b.numbers(), strict=False)
        return a[:2] == b[:2] and all(x == y or (x != x and y != y) for x, y in pairs)
    return a == b or (a != a and b != b)


def _typed(value: Any) -> tuple[str, Any]:
    """A dict key together with its type."""
    return type(value).__name__, value


def show(value: Any, limit: int = 100) -> str:
    """How a value is printed for the learner, cut at `limit` characters."""
    text = f"an object of class {value.what}" if type(value) is Other else repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
