"""The calls that the scripts of 09.2 are made of, and scripts as a manager would make them."""

from __future__ import annotations

import random
from typing import Any

from minipaged.course import plain
from minipaged.course.checks.lesson_09_models import IndexModel, Key
from minipaged.course.fixture_pools import PlainHashes
from minipaged.course.script import Case, Operation

NO_KEY = ("", "")


def match(tokens: list[int], key: Key = NO_KEY) -> Operation:
    """Ask for a prompt."""
    return Operation((tokens, key), "index", "match")


def publish(
    tokens: list[int], blocks: list[int], first: int, last: int, key: Key = NO_KEY
) -> Operation:
    """Make entries known."""
    return Operation((tokens, blocks, first, last, key), "index", "publish")


def forget(block_id: int) -> Operation:
    """Make a block unknown."""
    return Operation((block_id,), "index", "forget")


KNOWN = Operation((), "index", "known_blocks")
HASHED = Operation((), "pool", "hashed")


def index_case(name: str, story: str, block_size: int, *operations: Operation) -> Case:
    """A script on an index over PlainHashes."""
    made = (
        Operation((), "PlainHashes", keep="pool"),
        Operation((block_size, plain.Kept("pool")), keep="index"),
    )
    return Case(name, story, (*made, *operations))


class World:
    """A script as a manager would make it, over few different tokens, so that much is shared."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.size = rng, rng.randrange(1, 4)
        self.model = IndexModel(self.size, PlainHashes())
        self.operations: list[Operation] = []
        # tokens, block table, how many entries are known, key
        self.live: list[tuple[list[int], list[int], int, Key]] = []

    def case(self) -> Case:
        """14 calls and what is known after each."""
        for _ in range(14):
            act = self.rng.choice((self._start, self._start, self._go_on, self._go_on, self._end))
            act()
            self.operations += [KNOWN, HASHED]
        return index_case("hidden", "Blocks of another size.", self.size, *self.operations)

    def _do(self, operation: Operation) -> Any:
        self.operations.append(operation)
        return getattr(self.model, operation.method)(*operation.args)

    def _start(self) -> None:
        """A request comes, takes what is known and gets blocks for the rest."""
        rng = self.rng
        tokens = [rng.choice((1, 1, 12)) for _ in range(rng.randrange(1, 4 * self.size + 2))]
        key = rng.choice((NO_KEY, NO_KEY, ("a", ""), ("", "a")))
        hits = self._do(match(tokens, key))
        held = {block_id for _, table, _, _ in self.live for block_id in table}
        free = [b for b in range(10) if b not in held and b not in hits]
        missing = -(-len(tokens) // self.size) - len(hits)
        if missing <= len(free):
            new = rng.sample(free, missing)
            for block_id in new:
                self._do(forget(block_id))
            self.live.append((tokens, [*hits, *new], len(hits), key))

    def _go_on(self) -> None:
        """A request has computed some more."""
        ready = [one for one in self.live if len(one[0]) // self.size > one[2]]
        if ready:
            one = self.rng.choice(ready)
            tokens, table, first, key = one
            last = self.rng.randrange(first + 1, len(tokens) // self.size + 1)
            self._do(publish(tokens, table, first, last, key))
            self.live[self.live.index(one)] = (tokens, table, last, key)

    def _end(self) -> None:
        if self.live:
            self.live.pop(self.rng.randrange(len(self.live)))
