"""11.1 offset(block_table, token, head, d, shape, x): the place of a number in two layouts.

The oracle names the axes of a layout in order and counts places as in any row-major array; the
wrong ideas are other orders, other indices, or an axis left out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minipaged.course.checks.base import Check, Raises, Row
from minipaged.course.script import Case, Operation

Axis = tuple[int, int]  # index, length


class Asked(NamedTuple):
    """The arguments of one call."""

    table: list[int]
    token: int
    head: int
    d: int
    shape: tuple[int, int, int]
    x: int


def place(axes: Sequence[Axis]) -> int:
    """Where an element lies in a row-major array, the last axis side by side."""
    at = 0
    for index, length in axes:
        at = at * length + index
    return at


def _axes(a: Asked) -> dict[str, Axis]:
    """Every axis that a layout may have; the length of the first one does not matter."""
    size, heads, dim = a.shape
    x = a.x or 1
    return {
        "block": (a.table[a.token // size], 0),
        "slot": (a.token % size, size),
        "head": (a.head, heads),
        "d": (a.d, dim),
        "d // x": (a.d // x, dim // x),
        "d % x": (a.d % x, x),
    }


NHD = ("block", "slot", "head", "d")
PACKED = ("block", "head", "d // x", "slot", "d % x")


def laid_out(a: Asked, nhd: Sequence[str] = NHD, packed: Sequence[str] = PACKED) -> int:
    """The place with the axes in this order."""
    axes = _axes(a)
    return place([axes[name] for name in (packed if a.x else nhd)])


def answer(a: Asked) -> Any:
    """The place, or the exception that is due."""
    size, heads, dim = a.shape
    if a.x < 0 or (a.x and dim % a.x):
        return Raises("ValueError")
    limits = ((a.token, len(a.table) * size), (a.head, heads), (a.d, dim))
    if any(not 0 <= value < limit for value, limit in limits):
        return Raises("IndexError")
    return laid_out(a)


def _without_table(a: Asked) -> int:
    return laid_out(a._replace(table=list(range(len(a.table)))))


def _in_32_bits(a: Asked) -> int:
    return (laid_out(a) + 2**31) % 2**32 - 2**31


IDEAS: tuple[tuple[Callable[[Asked], int], str], ...] = (
    (
        _without_table,
        "The table was not asked. Token t is in block block_table[t // block_size], wherever that "
        "lies.",
    ),
    (
        lambda a: laid_out(a._replace(x=0)),
        "The packed pool was read like the other. With x > 0 a block is [head, d // x, slot, d % "
        "x].",
    ),
    (
        lambda a: laid_out(a, nhd=("block", "head", "slot", "d")),
        "Slot and head have changed places: in [block, slot, head, d] all heads of one token come "
        "before the next token.",
    ),
    (
        lambda a: laid_out(a, packed=("block", "slot", "head", "d // x", "d % x")),
        "Packed, the slots of a block stand between d // x and d % x: x numbers of one token, then "
        "x of the next token.",
    ),
    (
        lambda a: laid_out(a, packed=("block", "d // x", "head", "slot", "d % x")),
        "Head and d // x have changed places: in the packed block each head has its own part.",
    ),
    (
        lambda a: laid_out(a, packed=("block", "head", "d // x", "d % x", "slot")),
        "Slot and d % x have changed places: the x numbers of one token lie side by side.",
    ),
    (
        lambda a: laid_out(a, ("block", "slot", "d"), ("block", "d // x", "slot", "d % x")),
        "The KV head is missing from the address, or from the length of a block.",
    ),
    (
        lambda a: laid_out(a) - laid_out(a._replace(token=a.token - a.token % a.shape[0])),
        "This is the distance from the block's first slot. Where does the block begin?",
    ),
    (_in_32_bits, "This number has wrapped around at 2 to the 31."),
)


def diagnose(rows: Sequence[Row]) -> str:
    """The wrong idea that gives every answer and differs in one at least."""
    asked = [(Asked(*row.args), row.expected, row.got) for row in rows]
    numbers = [(a, got) for a, expected, got in asked if type(expected) is int]
    for idea, sentence in IDEAS:
        is_all = all(idea(a) == got for a, got in numbers)
        if is_all and any(got != laid_out(a) for a, got in numbers):
            return sentence
    return ""


def explain(failure: Any) -> str:
    """What is to be refused, where something was not."""
    if failure.expected == Raises("IndexError"):
        return (
            "There is no such number, and no IndexError says so. In Python block_table[-1] is an "
            "entry, and an address beyond a head lies in the next one: compare token, head and d "
            "with their limits first."
        )
    if failure.expected == Raises("ValueError"):
        return "x must be 0, or a positive number that divides head_dim."
    return ""


HAND = (4, 2, 8)
LLAMA = (16, 8, 128)


def visible() -> list[Case]:
    """By hand in both layouts, beyond 32 bits, and what is not there."""
    by_hand = "Table [2, 0], blocks of 4, 2 KV heads, head_dim 8: number 3 of head 1 of token 5."
    far = "Blocks of 16,384 numbers: the first number of block 131,072 is 2 to the 31."
    return [
        _case("by hand", by_hand, Asked([2, 0], 5, 1, 3, HAND, 0)),
        _case("by hand, packed", f"{by_hand} x is 4.", Asked([2, 0], 5, 1, 3, HAND, 4)),
        _case("the first of all", "Block 0, slot 0, head 0.", Asked([0], 0, 0, 0, HAND, 0)),
        _case(
            "a later token",
            "Table [9, 5]: token 7 is in block 5, slot 3.",
            Asked([9, 5], 7, 1, 6, HAND, 0),
        ),
        _case(
            "later, packed",
            "Token 7, in block 5, of a pool packed by 2.",
            Asked([9, 5], 7, 1, 6, HAND, 2),
        ),
        _case(
            "Llama-3-8B",
            "Llama-3-8B, blocks of 16: token 37, head 3.",
            Asked([7, 91, 142], 37, 3, 77, LLAMA, 0),
        ),
        _case(
            "Llama, packed",
            "Llama-3-8B, packed by 8: token 37, head 3.",
            Asked([7, 91, 142], 37, 3, 77, LLAMA, 8),
        ),
        _case("block 131,072", far, Asked([131_072], 0, 0, 0, LLAMA, 0)),
        _case("no such token", "2 blocks of 4 have no token 8.", Asked([2, 0], 8, 0, 0, HAND, 0)),
        _case("token -1", "There is no token -1.", Asked([2, 0], -1, 0, 0, HAND, 0)),
        _case("no such head", "2 KV heads: 0 and 1, no 2.", Asked([2, 0], 0, 2, 0, HAND, 0)),
        _case("d too large", "head_dim is 8, so d ends at 7.", Asked([2, 0], 0, 0, 8, HAND, 4)),
        _case("d negative", "d begins at 0: there is no -1.", Asked([2, 0], 1, 1, -1, HAND, 0)),
        _case(
            "head negative",
            "KV heads begin at 0: there is no -1.",
            Asked([2, 0], 1, -1, 0, HAND, 0),
        ),
        _case(
            "x does not divide",
            "head_dim is 8, which 3 does not divide.",
            Asked([2, 0], 0, 0, 0, HAND, 3),
        ),
        _case("x negative", "x is -1.", Asked([2, 0], 0, 0, 0, HAND, -1)),
    ]


def hidden(seed: int) -> list[Case]:
    """25 numbers of other pools, one of them beyond 32 bits, and 6 that are not there."""
    rng = random.Random(f"11.1/{seed}")
    cases = [_asked(rng, packed=k % 2 == 1) for k in range(24)]
    far = [rng.randrange(2**17, 2**18) for _ in range(3)]
    cases.append(Asked(far, rng.randrange(48), rng.randrange(8), rng.randrange(128), LLAMA, 0))
    for k in range(6):
        a = _asked(rng, packed=k == 1)
        size, heads, dim = a.shape
        spoilt: dict[str, Any] = (
            {"token": len(a.table) * size},
            {"x": dim + 1},
            {"head": heads},
            {"d": dim},
            {"token": -1 - a.token},
            {"d": -1},
        )[k]
        cases.append(a._replace(**spoilt))
    return [_case("hidden", "A number of another pool.", a) for a in cases]


def _asked(rng: random.Random, packed: bool) -> Asked:
    size, heads = rng.choice((2, 3, 4, 12, 16, 32)), rng.randrange(2, 9)
    x = rng.choice((2, 4, 8))
    dim = x * rng.randrange(2, 12)
    table = rng.sample(range(rng.choice((12, 300_000))), 5)
    token = rng.randrange(1, 5 * size)
    return Asked(
        table,
        token,
        rng.randrange(1, heads),
        rng.randrange(1, dim),
        (size, heads, dim),
        x if packed else 0,
    )


def picture(case: Case, number: int) -> str:
    """Block, slot and the axes of the layout, with their lengths."""
    a = Asked(*case.operations[number].args)
    if type(answer(a)) is Raises:
        return ""
    axes = _axes(a)
    names = PACKED if a.x else NHD
    shown = (f"{name} {axes[name][0]}" for name in names)
    lengths = (f"{axes[name][1] or 'all'}" for name in names)
    return f"layout [{', '.join(names)}] of lengths [{', '.join(lengths)}]:\n" + ", ".join(shown)


def _case(name: str, story: str, asked: Asked) -> Case:
    return Case(name, story, (Operation(tuple(asked)),))


def _oracle(case: Case) -> list[Any]:
    return [answer(Asked(*operation.args)) for operation in case.operations]


CHECK = Check(visible, hidden, _oracle, diagnose=diagnose, explain=explain, picture=picture)
