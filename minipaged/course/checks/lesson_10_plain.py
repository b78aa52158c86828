"""10.2: an index without a tree, and a desk that writes scripts while it plays the manager."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipaged.course import plain
from minipaged.course.fixture_pools import PlainHashPool
from minipaged.course.script import HOW, Operation

Key = tuple[str, str]
PLAIN: Key = ("", "")


class PlainIndex:
    """A prefix cache (PrefixCacheLike) on one dict: (key, all tokens up to a page's end) -> block.

    Right, and slow: every page is looked up with all the tokens before it.
    """

    def __init__(self, block_size: int, pool: PlainHashPool) -> None:
        self.block_size, self.pool = block_size, pool
        self.known: dict[tuple[Key, tuple[int, ...]], int] = {}

    def prefix(self, token_ids: Sequence[int], entry: int, key: Key) -> Any:
        """What the block of a table entry is known by."""
        return key, tuple(token_ids[: (entry + 1) * self.block_size])

    def limit(self, token_ids: Sequence[int]) -> int:
        """Pages that a match may find: one token is left to compute."""
        return max(0, len(token_ids) - 1) // self.block_size

    def match(self, token_ids: Sequence[int], key: Key) -> list[int]:
        """Blocks of the longest known prefix."""
        found: list[int] = []
        while len(found) < self.limit(token_ids):
            block_id = self.known.get(self.prefix(token_ids, len(found), key))
            if block_id is None:
                break
            found.append(block_id)
        return found

    def publish(
        self, token_ids: Sequence[int], block_ids: Sequence[int], first: int, last: int, key: Key
    ) -> list[tuple[int, int]]:
        """Make entries known; returns (entry, block) for those that another block stands for."""
        swaps = []
        for entry in range(last):
            known = self.known.setdefault(self.prefix(token_ids, entry, key), block_ids[entry])
            if known == block_ids[entry]:
                self.learn(known)
            else:
                swaps.append((entry, known))
        return swaps

    def learn(self, block_id: int) -> None:
        """Tell the pool that a block is known."""
        self.pool.set_hash(block_id, b"known")

    def forget(self, block_id: int) -> None:
        """Drop a block and what stands behind it."""
        for key, tokens in [p for p, b in self.known.items() if b == block_id]:
            for other in list(self.known):
                if other[0] == key and other[1][: len(tokens)] == tokens:
                    self.drop(other)

    def drop(self, prefix: Any) -> None:
        """Forget one page."""
        self.pool.set_hash(self.known.pop(prefix), None)

    def known_blocks(self) -> list[int]:
        """Every known block, in ascending order."""
        return sorted(self.known.values())

    def evictable_tokens(self) -> int:
        """Tokens in known blocks that no table holds."""
        return self.block_size * sum(not self.pool.refcount(b) for b in self.known.values())

    def protected_tokens(self) -> int:
        """Tokens in known blocks that some table holds."""
        return self.block_size * sum(self.pool.refcount(b) > 0 for b in self.known.values())


def drawn(index: PlainIndex) -> list[str]:
    """What is known, who is held and the queue, as lines."""
    lines = [
        f"block {block_id}{'*' if index.pool.refcount(block_id) else ' '}  "
        f"{' '.join(map(str, tokens[: -index.block_size]))} [{' '.join(map(str, page))}]"
        f"{'' if key == ('', '') else f'  salt, adapter {key}'}"
        for (key, tokens), block_id in sorted(index.known.items())
        for page in [tokens[-index.block_size :]]
    ]
    queue = " ".join(map(str, index.pool.free_queue))
    return ["known blocks (* held), with all tokens up to the page:", *lines, f"queue: {queue}"]


class Visitor:
    """A request at the desk: its tokens, its table, and how many entries are published."""

    def __init__(self, tokens: Sequence[int], key: Key, table: list[int]) -> None:
        self.tokens, self.key = list(tokens), key
        self.table, self.published = list(table), len(table)


class Desk:
    """Does what the manager does, on plain models, and writes every call down as a script."""

    def __init__(self, block_size: int, num_blocks: int) -> None:
        self.pool = PlainHashPool(num_blocks)
        self.index = PlainIndex(block_size, self.pool)
        self.operations = [
            Operation((num_blocks,), "PlainHashPool", keep="pool"),
            Operation((block_size, plain.Kept("pool")), keep="index"),
        ]

    def do(self, target: str, method: str, *args: Any, how: str = "call") -> Any:
        """One call, written down and carried out."""
        self.operations.append(Operation(args, target, method, how=how))
        return HOW[how](getattr(getattr(self, target), method), *args)

    def match(self, tokens: Sequence[int], key: Key = PLAIN) -> list[int]:
        """Look only."""
        found: list[int] = self.do("index", "match", list(tokens), key)
        return found

    def start(self, tokens: Sequence[int], key: Key = PLAIN) -> Visitor:
        """A request comes: what is known is shared, for the rest blocks are taken."""
        hits = self.match(tokens, key)
        if hits:
            self.do("pool", "share", list(hits))
        one = Visitor(tokens, key, hits)
        one.table += self.take(-(-len(tokens) // self.index.block_size) - len(hits))
        return one

    def take(self, count: int) -> list[int]:
        """Blocks are handed out; what they held is forgotten."""
        taken: list[int] = self.do("pool", "allocate", count) if count else []
        for block_id in taken:
            self.do("index", "forget", block_id)
        return taken

    def compute(self, one: Visitor, end: int | None = None) -> None:
        """Its tokens before `end` are computed: publish full blocks, then exchange duplicates."""
        end = len(one.tokens) if end is None else end
        first, last = one.published, end // self.index.block_size
        if last <= first:
            return
        args = (list(one.tokens), list(one.table), first, last, one.key)
        for entry, block_id in self.do("index", "publish", *args):
            self.do("pool", "share", [block_id])
            self.do("pool", "free", [one.table[entry]])
            one.table[entry] = block_id
        one.published = last

    def grow(self, one: Visitor, *tokens: int) -> None:
        """More known tokens, and room for them."""
        one.tokens += tokens
        one.table += self.take(-(-len(one.tokens) // self.index.block_size) - len(one.table))

    def finish(self, one: Visitor) -> None:
        """Its table is freed, tail first."""
        self.do("pool", "free", list(one.table))

    def run(self, *tokens: int, key: Key = PLAIN) -> Visitor:
        """A request from start to end."""
        one = self.start(tokens, key)
        self.compute(one)
        self.finish(one)
        return one

    def look(self) -> None:
        """All that can be seen without changing anything."""
        self.do("index", "known_blocks")
        self.do("pool", "hashed")
        self.do("pool", "num_free", how="get")
        self.do("index", "protected_tokens")
        self.do("index", "evictable_tokens")

    def queue(self) -> None:
        """The order of reuse."""
        self.do("pool", "free_queue", how="list")
