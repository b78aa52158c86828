"""10.2 RadixIndex(block_size, pool): scripts of what a manager does with an index and its pool.

The oracle runs each script on PlainIndex, one dict and no tree. The pool is that of fixtures.py, so
no earlier exercise is needed. How the tree is built is nobody's business: what is looked at is what
match and publish return, and what the pool is told.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from minipaged.course import plain
from minipaged.course.checks.base import Check, Raises
from minipaged.course.checks.lesson_10_ideas import explain, picture
from minipaged.course.checks.lesson_10_plain import Desk, PlainIndex, Visitor
from minipaged.course.script import Case, run


def visible() -> list[Case]:
    """Each rule once; cases 27 to 29 are the field's own."""
    return [*_finding(), *_sharing(), *_evicting()]


def _finding() -> Iterator[Case]:
    """match and publish, one request at a time."""
    desk = Desk(4, 4)
    desk.match([1, 2, 3])
    desk.look()
    desk.run(1, 2, 3, 4, 5, 6)
    desk.look()
    desk.match([1, 2, 3])
    desk.queue()
    yield _case(
        "whole pages only",
        "Pages of 4. Three tokens are asked for; then a request of six tokens has run.",
        desk,
    )
    desk = Desk(2, 6)
    desk.run(1, 2, 3, 4, 5, 6)
    for end in (6, 5, 7):
        desk.match([1, 2, 3, 4, 5, 6, 7][:end])
    desk.match([1, 2, 9, 4, 5, 6])
    desk.match([2, 1, 3, 4])
    yield _case("one token is left", "Six tokens are known. Who asks for six, finds four.", desk)
    desk = Desk(2, 8)
    one = desk.start([1, 2, 3, 4, 5, 6])
    desk.compute(one, 4)
    desk.match([1, 2, 3, 4, 5, 6, 7])
    desk.look()
    desk.compute(one)
    desk.grow(one, 7, 8, 9)
    desk.compute(one, 8)
    desk.match([1, 2, 3, 4, 5, 6, 7, 8, 9])
    desk.look()
    yield _case(
        "chunk by chunk",
        "The prompt is computed in two chunks, then the answer comes. Only what is computed is "
        "published.",
        desk,
    )
    desk = Desk(1, 12)
    desk.run(1, 2, 3, 4, 5, 6)
    desk.run(1, 2, 3, 9, 9)
    desk.run(1, 2, 7)
    for tokens in ([1, 2, 3, 4, 5, 6, 0], [1, 2, 3, 9, 9, 0], [1, 2, 7, 0], [1, 2, 0]):
        desk.match(tokens)
    desk.look()
    yield _case("three that part", "The three sequences of the lesson, one after the other.", desk)


def _sharing() -> Iterator[Case]:
    """Keys, duplicates, splits under a running request."""
    desk = Desk(2, 8)
    desk.run(1, 2, 3, 4, key=("", "X"))
    for key in (("Y", "Z"), ("X", ""), ("", ""), ("", "X")):
        desk.match([1, 2, 3, 4, 5], key)
    desk.run(1, 2, 3, key=("X", "Y"))
    desk.match([1, 2, 3], ("X", ""))
    yield _case("salts and adapters", "The same tokens under other keys.", desk)
    desk = Desk(2, 10)
    desk.take(2)
    one, two = desk.start([1, 2, 3, 4, 5]), desk.start([1, 2, 3, 4, 6, 7])
    desk.compute(one)
    desk.compute(two)
    desk.look()
    desk.finish(one)
    desk.look()
    desk.finish(two)
    desk.queue()
    desk.match([1, 2, 3, 4, 6, 7, 8])
    yield _case(
        "two at the same time",
        "Two requests begin alike and compute the same pages in one step. The second publishes "
        "what the tree has already.",
        desk,
    )
    desk = Desk(1, 8)
    desk.run(1, 2, 3, 4, 5, 6)
    desk.run(1, 2, 3)
    desk.queue()
    desk.match([1, 2, 3, 4, 5, 6, 7])
    desk.look()
    yield _case(
        "the beginning of what is known",
        "Six tokens are known. A request of the first three computes its last one again.",
        desk,
    )
    yield from _half_used()


def _half_used() -> Iterator[Case]:
    """Nodes of which a running request holds a part."""
    desk = Desk(1, 8)
    running = desk.start([1, 2, 3, 4, 5, 6])
    desk.compute(running)
    desk.run(1, 2, 3, 9, 9)
    desk.look()
    desk.match([1, 2, 3, 4, 5, 6, 7])
    desk.take(2)
    desk.look()
    yield _case(
        "split under a running request",
        "A request of six tokens is running. Another one shares three of them and finishes. Then "
        "all that can be had is taken.",
        desk,
    )
    desk = Desk(1, 8)
    desk.run(1, 2, 3, 4, 5, 6)
    desk.look()
    desk.do("pool", "share", desk.match([1, 2, 3, 7]))
    desk.look()
    yield _case(
        "half a node in use",
        "Six tokens are known and idle. A request finds three of them and holds those.",
        desk,
    )


def _evicting() -> Iterator[Case]:
    """forget, in the queue's order and out of it."""
    desk = Desk(1, 7)
    desk.run(1, 2, 3, 9)
    whole = desk.run(1, 2, 3, 4, 5, 6)
    desk.take(1)
    desk.do("pool", "share", desk.match([1, 2, 3, 4, 5, 6, 0]))
    desk.look()
    desk.finish(whole)
    desk.look()
    desk.take(6)
    desk.look()
    yield _case(
        "in use to the root",
        "Two nodes, one below the other. Whoever holds the lower holds the upper; then nobody "
        "does, and all is evicted.",
        desk,
    )
    desk = Desk(2, 6)
    desk.run(1, 2, 3, 4, 5, 6)
    desk.run(1, 2, 8, 8)
    desk.queue()
    for _ in range(4):
        desk.take(1)
        desk.match([1, 2, 3, 4, 5, 6, 7])
    desk.look()
    yield _case(
        "leaves first",
        "Blocks are handed out one by one, in the queue's order. Each time less is known.",
        desk,
    )
    desk = Desk(1, 12)
    desk.run(1, 2, 3, 4)
    desk.run(1, 2, 3, 9)
    desk.run(1, 2, 5, 6)
    desk.do("index", "forget", 11)
    desk.do("index", "forget", 1)
    desk.look()
    desk.match([1, 2, 3, 9, 9])
    desk.run(1, 2, 3)
    desk.match([1, 2, 3, 0])
    desk.do("index", "forget", 0)
    desk.look()
    desk.run(1, 2)
    desk.match([1, 2, 3])
    yield _case(
        "out of the middle",
        "A block is forgotten that three sequences go through, and one that nobody knows.",
        desk,
    )


def hidden(seed: int) -> list[Case]:
    """12 random days at the desk."""
    rng = random.Random(f"10.2/{seed}")
    return [_hidden_case(rng, 1 + number % 3) for number in range(12)]


def _hidden_case(rng: random.Random, size: int) -> Case:
    """Requests that begin like each other come, compute and go; then blocks are forgotten."""
    desk, running = Desk(size, rng.randrange(9, 15)), list[Visitor]()
    trunk = [rng.randrange(9) for _ in range(5 * size + 1)]
    for _ in range(12):
        what = rng.randrange(8)
        if what < 4 or not running:
            _arrive(rng, desk, running, trunk)
        elif what == 4 and desk.pool.num_free > 2:
            desk.grow(rng.choice(running), *(rng.randrange(2) for _ in range(size)))
        elif what == 5:
            desk.finish(running.pop(rng.randrange(len(running))))
        else:
            one = rng.choice(running)
            desk.compute(one, rng.choice([len(one.tokens), len(one.tokens) // 2]))
        desk.look()
    for _ in range(3):
        known = desk.index.known_blocks()
        desk.do("index", "forget", rng.choice([*known, *known, 0]))
        desk.look()
        _arrive(rng, desk, [], trunk)
        desk.match(trunk)
    return _case("hidden", "Another day.", desk)


def _arrive(rng: random.Random, desk: Desk, running: list[Visitor], trunk: list[int]) -> None:
    """A request that leaves the trunk somewhere, if the pool has room; half of them end at once."""
    size = desk.index.block_size
    tokens = trunk[: rng.randrange(len(trunk) + 1)]
    tokens += [rng.randrange(2) for _ in range(rng.randrange(1, 2 * size + 1))]
    if rng.randrange(3) == 0:
        tokens = trunk[: size * rng.randrange(1, 6)]
    if -(-len(tokens) // size) > desk.pool.num_free:
        return
    one = desk.start(tokens, rng.choice([("", ""), ("", ""), ("", ""), ("a", ""), ("", "a")]))
    if rng.randrange(2):
        running.append(one)
    else:
        desk.compute(one)
        desk.finish(one)


def _case(name: str, story: str, desk: Desk) -> Case:
    return Case(name, story, tuple(desk.operations))


def _oracle(case: Case) -> list[Any]:
    seen = run(case.operations, PlainIndex)
    return [
        Raises(one.fault.kinds[0]) if one.fault else plain.decode(one.value)
        for operation, one in zip(case.operations, seen, strict=True)
        if not operation.keep
    ]


CHECK = Check(visible, hidden, _oracle, explain=explain, picture=picture)
