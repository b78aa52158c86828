"""09.1 chain(token_ids, block_size, key, root): a SHA-256 digest for every full block.

The text that is hashed is fixed by the task, so the oracle works the chain out. A wrong digest says
nothing by itself; what is behind it is found by trying what else might have been hashed.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minipaged.course.checks.base import Check, Failure, Row
from minipaged.course.script import Case, Operation

Tokens = list[int]
Key = tuple[str, str]
NO_KEY = ("", "")


class Way(NamedTuple):
    """A way to make a chain. start: what stands before the first block, from key and root. link:
    the text to hash, from start, what stands before the block, and its tokens. cut: how many
    blocks. place: where a block begins, from its number and the block size."""

    start: Callable[[Key, str], str] = lambda key, root: root + repr(key)
    link: Callable[[str, str, Tokens], str] = lambda start, before, tokens: before + str(tokens)
    cut: Callable[[int, int], int] = lambda length, size: length // size
    place: Callable[[int, int], int] = lambda number, size: number * size


def follow(way: Way, token_ids: Tokens, size: int, key: Key = NO_KEY, root: str = "") -> list[str]:
    """The digests that a way gives. Cost: one hash a block."""
    start = before = way.start(key, root)
    digests = []
    for number in range(way.cut(len(token_ids), size)):
        first = way.place(number, size)
        before = sha256(way.link(start, before, token_ids[first : first + size]))
        digests.append(before)
    return digests


def sha256(text: str) -> str:
    """64 hex digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def visible() -> list[Case]:
    """Each part of what is hashed decides in one of them."""
    return [
        _case("one block", "Four tokens, blocks of 4, no salt and no adapter.", [1, 2, 3, 4], 4),
        _case("two blocks", "The second digest covers the first one.", [*range(1, 9)], 4),
        _case(
            "the same second block",
            "Two prompts that differ in their first block only. Their second digests differ too.",
            *([1, 2, 3, 4, 9, 9, 9, 9], 4),
            [5, 6, 7, 8, 9, 9, 9, 9],
        ),
        _case("a block that is not full", "Ten tokens fill two blocks of 4.", [*range(10)], 4),
        _case("fewer tokens than a block", "There is nothing to hash.", [1, 2, 3], 4),
        _case(
            "one and 23, 12 and 3",
            "The digits are the same, the tokens are not.",
            *([1, 23], 2),
            [12, 3],
        ),
        Case(
            "salt X and adapter X",
            "The same prompt under three keys: nobody may find what another one left.",
            tuple(_call([7, 8], 2, key) for key in (("X", ""), ("", "X"), ("X", "X"))),
        ),
        Case(
            "a root of this process",
            "Another root, another chain, from the first block on.",
            (_call([7, 8, 7, 8], 2, NO_KEY, "f00d"), _call([7, 8, 7, 8], 2, ("X", ""), "beef")),
        ),
        _case("blocks of 1", "Every token is a block.", [5, 5, 5], 1),
    ]


def hidden(seed: int) -> list[Case]:
    """12 prompts of other lengths, half of them with a key and a root."""
    rng = random.Random(f"09.1/{seed}")
    return [_random_case(rng, with_key=number % 2 == 1) for number in range(12)]


def _random_case(rng: random.Random, with_key: bool) -> Case:
    size = rng.randrange(1, 9)
    tokens = [rng.randrange(50_000) for _ in range(rng.randrange(5 * size + 1))]
    key = (rng.choice(("", "a", "b'")), rng.choice(("", "a"))) if with_key else NO_KEY
    root = f"{rng.getrandbits(64):016x}" if with_key else ""
    return Case("hidden", "A prompt of another length.", (_call(tokens, size, key, root),))


def _case(name: str, story: str, tokens: Tokens, size: int, *others: Tokens) -> Case:
    return Case(name, story, tuple(_call(one, size) for one in (tokens, *others)))


def _call(tokens: Tokens, size: int, key: Key = NO_KEY, root: str = "") -> Operation:
    """The call with as few arguments as it needs."""
    more = (key, root) if root else (key,) if key != NO_KEY else ()
    return Operation((tokens, size, *more))


def _oracle(case: Case) -> list[Any]:
    return [follow(Way(), *operation.args) for operation in case.operations]


FULL = "Only full blocks have a digest: the tokens behind the last full one have no place in it."
JOINED = (
    "Between what stands before a block and its tokens is something more: join them as they are."
)


def _with(separator: str) -> Way:
    return Way(link=lambda start, before, tokens: before + separator + str(tokens))


MISTAKES = (
    (
        Way(cut=lambda length, size: -(-length // size)),
        "The last digest is that of a block that is not full.",
    ),
    (
        Way(cut=lambda length, size: max(0, length - 1) // size),
        "Every full block has a digest, the last one too. That a token has to be left to compute "
        "is the business of whoever looks blocks up.",
    ),
    (
        Way(link=lambda start, before, tokens: str(tokens)),
        "Each digest covers the tokens of its own block alone. Then equal blocks behind different "
        "beginnings look the same: hash the digest of the block before together with the tokens.",
    ),
    (
        Way(link=lambda start, before, tokens: start + str(tokens)),
        "Every block is hashed as if it were the first. Behind the first one stands the digest of "
        "the block before it, in place of root and key.",
    ),
    (
        Way(
            link=lambda start, before, tokens: (
                (before if before == start else start + before) + str(tokens)
            )
        ),
        "Root and key belong to the first block only. The others get them through the chain.",
    ),
    (
        Way(place=lambda number, size: number),
        "The blocks overlap: each begins one token behind the one before it. It has to begin where "
        "that one ends.",
    ),
    *((_with(separator), JOINED) for separator in (" ", ",", "|", "\n")),
    (
        Way(link=lambda start, before, tokens: before + "".join(map(str, tokens))),
        "The tokens run into each other: a separator has to keep them apart. str() of a list has "
        "one.",
    ),
    (
        Way(start=lambda key, root: root + "".join(key)),
        "Salt and adapter run into each other, so the one cannot be told from the other. repr() "
        "of the pair keeps them apart.",
    ),
    (
        Way(start=lambda key, root: root + repr((key[1], key[0]))),
        "Salt and adapter have changed places.",
    ),
    (
        Way(start=lambda key, root: root),
        "The key is not in the chain, so all tenants and adapters share their blocks.",
    ),
    (
        Way(start=lambda key, root: repr(key)),
        "The root is not in the chain, so anybody can work the digests out in advance.",
    ),
    (
        Way(start=lambda key, root: repr(key) + root),
        "The root comes first, then the key.",
    ),
)
RULE = (
    "What is hashed for a block is a text: before the tokens of the first block stand the root and "
    "repr(key), before those of any other the digest of the block in front of it."
)
KIND = "The result is a list with a text of 64 hex digits for every full block: hexdigest()."


def diagnose(rows: Sequence[Row]) -> str:
    """What else was hashed, if that is known and explains every digest."""
    for way, sentence in MISTAKES:
        if all(row.got == follow(way, *row.args) for row in rows):
            return sentence
    return ""


def explain(failure: Failure) -> str:
    """The form of the result, or what has to be hashed."""
    if failure.fault or not _is_digests(failure.got):
        return KIND
    return RULE if len(failure.got) == len(failure.expected) else FULL


def _is_digests(got: Any) -> bool:
    return type(got) is list and all(type(one) is str and len(one) == 64 for one in got)


CHECK = Check(visible, hidden, _oracle, diagnose, explain)
