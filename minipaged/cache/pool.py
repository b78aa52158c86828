"""The block pool: who may use which block, by reference counts over one free queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from minipaged.cache.block import Block, FreeQueue
from minipaged.protocols import FreeQueueLike


class BlockPool:
    """A fixed number of blocks; each is on the free queue exactly when its refcount is 0.

    refcount counts the block tables that hold a block, nothing else. A freed block keeps its
    contents and its hash until it is handed out again. Every operation on several blocks is all
    or nothing: if it raises, neither a count nor the order of the queue has changed.
    """

    __slots__ = ("blocks", "free_queue")

    def __init__(
        self, num_blocks: int, make_queue: Callable[[int], FreeQueueLike] = FreeQueue
    ) -> None:
        self.blocks = [Block(i) for i in range(num_blocks)]
        self.free_queue = make_queue(num_blocks)

    @property
    def num_blocks(self) -> int:
        """Blocks in all, free or held."""
        return len(self.blocks)

    @property
    def num_free(self) -> int:
        """Blocks that nobody holds."""
        return len(self.free_queue)

    def refcount(self, block_id: int) -> int:
        """How many tables hold the block."""
        return self.blocks[block_id].refcount

    def block_hash(self, block_id: int) -> bytes | None:
        """The hash that the block's contents are known by, or None."""
        return self.blocks[block_id].block_hash

    def set_hash(self, block_id: int, block_hash: bytes | None) -> None:
        """What a prefix cache knows the block by; None once it does not know it any more.

        It takes effect when the block is freed: where it stands on the queue is not changed.
        """
        self.blocks[block_id].block_hash = block_hash

    def allocate(self, count: int) -> list[int]:
        """Hand out `count` blocks with refcount 1 each, from the head of the free queue.

        MemoryError if fewer are free. Cost: O(count).
        """
        queue, blocks = self.free_queue, self.blocks
        if count > len(queue):
            raise MemoryError(f"{count} blocks asked for, but only {len(queue)} are free")
        ids = [queue.pop_head() for _ in range(count)]
        for block_id in ids:
            block = blocks[block_id]
            block.refcount = 1
            block.block_hash = None
        return ids

    def share(self, block_ids: Sequence[int]) -> None:
        """One more holder for each block, idle ones included: those leave the free queue.

        ValueError for an id that does not exist. Cost: O(len(block_ids)).
        """
        self._require_known(block_ids)
        for block_id in block_ids:
            block = self.blocks[block_id]
            if block.refcount == 0:
                self.free_queue.remove(block_id)
            block.refcount += 1

    def free(self, block_ids: Sequence[int]) -> None:
        """One holder fewer for each block; those with none left go to the free queue.

        The list is worked off from its end, so that the tail of a table is reused before its
        head. A block with a hash goes to the queue's end (its contents may be wanted again), one
        without to its front. ValueError if a block would be freed more often than it is held.
        Cost: O(len(block_ids)).
        """
        self._require_held(block_ids)
        blocks, queue = self.blocks, self.free_queue
        for block_id in reversed(block_ids):
            block = blocks[block_id]
            block.refcount -= 1
            if block.refcount == 0:
                if block.block_hash is None:
                    queue.prepend(block_id)
                else:
                    queue.append(block_id)

    def _require_held(self, block_ids: Sequence[int]) -> None:
        """ValueError unless every block is held at least as often as it stands in the list."""
        self._require_known(block_ids)
        blocks = self.blocks
        drops_of = dict.fromkeys(block_ids, 1)
        if len(drops_of) < len(block_ids):
            drops_of = Counter(block_ids)
        for block_id, drops in drops_of.items():
            held = blocks[block_id].refcount
            if drops > held:
                raise ValueError(f"double free: block {block_id} has {held} holders, not {drops}")

    def _require_known(self, block_ids: Sequence[int]) -> None:
        last = len(self.blocks) - 1
        if block_ids and (min(block_ids) < 0 or max(block_ids) > last):
            unknown = next(block_id for block_id in block_ids if not 0 <= block_id <= last)
            raise ValueError(f"block {unknown} does not exist: ids end at {last}")
