"""Plain models of lesson 09's classes, and what the scripts give on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from minipaged.course import plain
from minipaged.course.expect import Raises
from minipaged.course.script import Case, Observation, Operation, run

Key = tuple[str, str]


def came_of(operations: Iterable[Operation], model: Callable[..., Any]) -> list[Any]:
    """What each operation that is not kept gives on a model, an exception as Raises."""
    script = list(operations)
    pairs = zip(script, run(script, model), strict=True)
    return [_value(one) for operation, one in pairs if not operation.keep]


def before(case: Case, number: int, look: Operation, model: Callable[..., Any]) -> Any:
    """What `look` gives on a model just before an operation; None if the model is not made yet."""
    value = came_of((*case.operations[:number], look), model)[-1]
    return None if type(value) is Raises else value


def _value(one: Observation) -> Any:
    if one.fault is not None:
        return Raises(one.fault.kinds[0])
    return plain.decode(one.value)


class IndexModel:
    """What the index does, by names that hold everything: the key and all tokens of a prefix."""

    def __init__(self, block_size: int, pool: Any, hash_function: Any = None) -> None:
        self.block_size, self.pool, self.hash_function = block_size, pool, hash_function
        self.blocks_of: dict[Any, list[int]] = {}
        self.name_of: dict[int, Any] = {}

    def name(self, token_ids: Sequence[int], entry: int, key: Key, first: int = 0) -> Any:
        """What a block is known by: entry `entry` of a table, published from `first` on."""
        return key, tuple(token_ids[: (entry + 1) * self.block_size])

    def limit(self, token_ids: Sequence[int]) -> int:
        """How many blocks a match may have at most."""
        return max(0, len(token_ids) - 1) // self.block_size

    def match(self, token_ids: Sequence[int], key: Key) -> list[int]:
        """The blocks of the longest known prefix."""
        found = []
        for entry in range(self.limit(token_ids)):
            blocks = self.blocks_of.get(self.name(token_ids, entry, key))
            if not blocks:
                break
            found.append(blocks[0])
        return found

    def publish(
        self, token_ids: Sequence[int], block_ids: Sequence[int], first: int, last: int, key: Key
    ) -> list[tuple[int, int]]:
        """Make entries known."""
        for entry in range(first, last):
            if block_ids[entry] not in self.name_of:
                name = self.name(token_ids, entry, key, first)
                self.name_of[block_ids[entry]] = name
                self.blocks_of.setdefault(name, []).append(block_ids[entry])
                self.pool.set_hash(block_ids[entry], "known")
        return []

    def forget(self, block_id: int) -> None:
        """Make a block unknown."""
        if block_id in self.name_of:
            self.blocks_of[self.name_of.pop(block_id)].remove(block_id)
            self.pool.set_hash(block_id, None)

    def known_blocks(self) -> list[int]:
        """All of them, in ascending order."""
        return sorted(self.name_of)

    def told(self) -> list[str]:
        """For the learner to look at."""
        rows = []
        for block_id in self.known_blocks():
            (salt, adapter), tokens = self.name_of[block_id]
            key = "".join(f", {k} {v!r}" for k, v in (("salt", salt), ("adapter", adapter)) if v)
            own = " ".join(map(str, tokens[-self.block_size :]))
            before = " ".join(map(str, tokens[: -self.block_size]))
            rows.append(f"block {block_id}: {own}" + (f", behind {before}" if before else "") + key)
        return rows


class PoolModel:
    """What the pool does, on a list."""

    def __init__(self, num_blocks: int, make_queue: Any) -> None:
        self.num_blocks = num_blocks
        self.free_queue = list(range(num_blocks))
        self.counts = [0] * num_blocks
        self.hashes: list[str | None] = [None] * num_blocks

    @property
    def num_free(self) -> int:
        """Blocks that nobody holds."""
        return len(self.free_queue)

    def refcount(self, block_id: int) -> int:
        """Holders of a block."""
        return self.counts[block_id]

    def block_hash(self, block_id: int) -> str | None:
        """What a block is known by."""
        return self.hashes[block_id]

    def set_hash(self, block_id: int, block_hash: str | None) -> None:
        """Let it be known by this."""
        self.hashes[block_id] = block_hash

    def allocate(self, count: int) -> list[int]:
        """From the head, without hashes."""
        return self.take([], count)

    def share(self, block_ids: Sequence[int]) -> None:
        """One holder more each."""
        self._require_known(block_ids)
        for block_id in block_ids:
            if self.counts[block_id] == 0:
                self.free_queue.remove(block_id)
            self.counts[block_id] += 1

    def free(self, block_ids: Sequence[int]) -> None:
        """One holder fewer each, from the end of the list."""
        self._require_known(block_ids)
        if any(n > self.counts[block_id] for block_id, n in Counter(block_ids).items()):
            raise ValueError("double free")
        for block_id in reversed(block_ids):
            self.counts[block_id] -= 1
            if self.counts[block_id] == 0:
                end = 0 if self.hashes[block_id] is None else len(self.free_queue)
                self.free_queue.insert(end, block_id)

    def _require_known(self, block_ids: Sequence[int]) -> None:
        if not all(0 <= block_id < self.num_blocks for block_id in block_ids):
            raise ValueError("no such block")

    def take(self, hits: Sequence[int], num_new: int) -> list[int]:
        """Hits and new blocks together, or none."""
        idle = [block_id for block_id in hits if self.counts[block_id] == 0]
        if len(idle) + num_new > self.num_free:
            raise MemoryError("too few free blocks")
        self.share(hits)
        new, self.free_queue = self.free_queue[:num_new], self.free_queue[num_new:]
        for block_id in new:
            self.counts[block_id], self.hashes[block_id] = 1, None
        return [*hits, *new]

    def state(self) -> list[str]:
        """For the learner to look at."""
        rows = zip(range(self.num_blocks), self.counts, self.hashes, strict=True)
        lines = [
            "".join(f"{'-' if part is None else part:>4}" for part in row)
            for row in zip(*rows, strict=True)
        ]
        names = ("block", "refcount", "hash")
        shown = [f"{name:9}{line}" for name, line in zip(names, lines, strict=True)]
        return [*shown, "queue        " + ("   ".join(map(str, self.free_queue)) or "empty")]
