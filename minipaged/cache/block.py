"""A block's bookkeeping, and the queue of free blocks.

A block is `block_size` slots of the KV pool; the keys and values themselves live in the executor.
Here a block is a number, how many tables hold it, and the hash that its contents are known by.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class Block:
    """refcount: how many block tables hold it. block_hash: set while a prefix index knows it."""

    __slots__ = ("block_hash", "block_id", "refcount")

    def __init__(self, block_id: int) -> None:
        self.block_id = block_id
        self.refcount = 0
        self.block_hash: bytes | None = None

    def __repr__(self) -> str:
        hashed = "" if self.block_hash is None else f", hash {self.block_hash.hex()[:8]}"
        return f"Block({self.block_id}, refcount {self.refcount}{hashed})"


class FreeQueue:
    """The ids of free blocks in the order in which they will be handed out.

    A doubly linked list in which every operation is O(1), removal from the middle included: that
    is what a prefix cache needs to take back an idle block that somebody wants again. The links
    are intrusive: they stand in two lists indexed by block id, so queueing a block allocates
    nothing. Index `num_blocks` is the sentinel, before the head and behind the tail.

    Structure: as vLLM's FreeKVCacheBlockQueue (vllm/v1/core/kv_cache_utils.py).
    """

    __slots__ = ("_next", "_prev", "_size", "num_blocks")

    def __init__(self, num_blocks: int) -> None:
        """All ids 0 … num_blocks - 1 are free, in that order."""
        self.num_blocks = num_blocks
        self._next = [*range(1, num_blocks + 1), 0]
        self._prev = [num_blocks, *range(num_blocks)]
        self._size = num_blocks

    def pop_head(self) -> int:
        """Take the first id. IndexError if the queue is empty."""
        if not self._size:
            raise IndexError("the free queue is empty")
        block_id = self._next[self.num_blocks]
        self._unlink(block_id)
        return block_id

    def append(self, block_id: int) -> None:
        """Put a block last: it is handed out after all others."""
        self._link(block_id, self._prev[self.num_blocks])

    def prepend(self, block_id: int) -> None:
        """Put a block first: it is handed out next."""
        self._link(block_id, self.num_blocks)

    def remove(self, block_id: int) -> None:
        """Take a given id out, wherever it stands. ValueError if it is not queued."""
        if block_id not in self:
            raise ValueError(f"block {block_id} is not on the free queue")
        self._unlink(block_id)

    def __contains__(self, block_id: object) -> bool:
        return (
            isinstance(block_id, int)
            and 0 <= block_id < self.num_blocks
            and self._next[block_id] != _OFF
        )

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        """Ids from head to tail. Do not change the queue meanwhile."""
        block_id = self._next[self.num_blocks]
        while block_id != self.num_blocks:
            yield block_id
            block_id = self._next[block_id]

    def _link(self, block_id: int, before: int) -> None:
        """Insert block_id right behind `before`."""
        if not 0 <= block_id < self.num_blocks:
            raise ValueError(f"block {block_id} does not exist: ids end at {self.num_blocks - 1}")
        if self._next[block_id] != _OFF:
            raise ValueError(f"block {block_id} is on the free queue already")
        after = self._next[before]
        self._next[before] = self._prev[after] = block_id
        self._prev[block_id], self._next[block_id] = before, after
        self._size += 1

    def _unlink(self, block_id: int) -> None:
        before, after = self._prev[block_id], self._next[block_id]
        self._next[before], self._prev[after] = after, before
        self._prev[block_id] = self._next[block_id] = _OFF
        self._size -= 1


_OFF = -1  # a link of a block that is not queued


def in_order(queue: Iterable[int], limit: int) -> list[int]:
    """The ids of a queue, at most `limit` + 1 of them, so that a faulty cycle ends."""
    ids: list[int] = []
    for block_id in queue:
        ids.append(block_id)
        if len(ids) > limit:
            break
    return ids
