"""Pools that a script may lend: plain and slow, so that one exercise never needs another one.

Standard library only: this runs in the learner's process too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from minipaged.course.fixtures import PlainQueue


class PlainPool:
    """A block pool on a list of counts: right, and slow. It hands out the lowest free ids first.

    Like the pool of lesson 02 all or nothing, but without a queue and without hashes.
    """

    def __init__(self, num_blocks: int) -> None:
        self._counts = [0] * num_blocks

    @property
    def num_blocks(self) -> int:
        """Blocks in all, free or held."""
        return len(self._counts)

    @property
    def num_free(self) -> int:
        """Blocks that nobody holds."""
        return self._counts.count(0)

    def refcount(self, block_id: int) -> int:
        """How many tables hold the block; ValueError if it does not exist."""
        self._require_known([block_id])
        return self._counts[block_id]

    def allocate(self, count: int) -> list[int]:
        """Hand out `count` blocks with refcount 1 each; MemoryError if fewer are free."""
        block_ids = [b for b, held in enumerate(self._counts) if not held][:count]
        if len(block_ids) < count:
            raise MemoryError(f"{count} blocks asked for, but only {len(block_ids)} are free")
        for block_id in block_ids:
            self._counts[block_id] = 1
        return block_ids

    def share(self, block_ids: Sequence[int]) -> None:
        """One more holder each; ValueError for an id that does not exist."""
        self._require_known(block_ids)
        for block_id in block_ids:
            self._counts[block_id] += 1

    def free(self, block_ids: Sequence[int]) -> None:
        """One holder fewer each; ValueError if one is freed more often than it is held."""
        self._require_known(block_ids)
        for block_id, drops in Counter(block_ids).items():
            if drops > self._counts[block_id]:
                raise ValueError(f"double free: block {block_id} has fewer than {drops} holders")
        for block_id in block_ids:
            self._counts[block_id] -= 1

    def _require_known(self, block_ids: Sequence[int]) -> None:
        for block_id in block_ids:
            if not 0 <= block_id < len(self._counts):
                raise ValueError(f"block {block_id} is none of the {len(self._counts)} blocks")


class PlainHashes:
    """The part of a pool that a prefix cache talks to: which block is known by which hash."""

    def __init__(self) -> None:
        self._hashes: dict[int, Any] = {}

    def set_hash(self, block_id: int, block_hash: Any) -> None:
        """What the block is known by; None once it is not known any more."""
        self._hashes[block_id] = block_hash

    def block_hash(self, block_id: int) -> Any:
        """What the block is known by, or None."""
        return self._hashes.get(block_id)

    def hashed(self) -> list[int]:
        """Ids of the blocks that have a hash, in ascending order."""
        return sorted(b for b, block_hash in self._hashes.items() if block_hash is not None)


def one_hash(data: Any) -> str:
    """A hash function that gives the same hash for everything."""
    return "the one hash"


class PlainHashPool:
    """A block pool (BlockPoolLike) on lists, with hashes: right, and slow."""

    def __init__(self, num_blocks: int) -> None:
        self.free_queue = PlainQueue(num_blocks)
        self.refcounts = [0] * num_blocks
        self.hashes: list[Any] = [None] * num_blocks

    @property
    def num_blocks(self) -> int:
        """Blocks in all."""
        return len(self.refcounts)

    @property
    def num_free(self) -> int:
        """Blocks that nobody holds."""
        return len(self.free_queue)

    def refcount(self, block_id: int) -> int:
        """How many tables hold the block."""
        return self.refcounts[block_id]

    def block_hash(self, block_id: int) -> Any:
        """What the block is known by, or None."""
        return self.hashes[block_id]

    def set_hash(self, block_id: int, block_hash: Any) -> None:
        """What the block is known by; None if it is not known any more."""
        self.hashes[block_id] = block_hash

    def hashed(self) -> list[int]:
        """Every block that has a hash, in ascending order; for scripts only."""
        return [b for b, block_hash in enumerate(self.hashes) if block_hash is not None]

    def allocate(self, count: int) -> list[int]:
        """Blocks from the head of the queue, without a hash; MemoryError if fewer are free."""
        if count > self.num_free:
            raise MemoryError(f"{count} blocks asked for, but only {self.num_free} are free")
        block_ids = [self.free_queue.pop_head() for _ in range(count)]
        for block_id in block_ids:
            self.refcounts[block_id], self.hashes[block_id] = 1, None
        return block_ids

    def share(self, block_ids: Sequence[int]) -> None:
        """One more holder each."""
        for block_id in block_ids:
            if self.refcounts[block_id] == 0:
                self.free_queue.remove(block_id)
            self.refcounts[block_id] += 1

    def free(self, block_ids: Sequence[int]) -> None:
        """One holder fewer each, from the list's end; ValueError on a double free."""
        if any(block_ids.count(b) > self.refcounts[b] for b in block_ids):
            raise ValueError(f"double free in {list(block_ids)}")
        for block_id in reversed(block_ids):
            self.refcounts[block_id] -= 1
            if self.refcounts[block_id] == 0:
                is_known = self.hashes[block_id] is not None
                (self.free_queue.append if is_known else self.free_queue.prepend)(block_id)
