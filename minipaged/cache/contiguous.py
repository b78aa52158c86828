"""A block pool that hands out neighbours only: memory as it was before block tables.

A component for comparisons. With it a reservation is one stretch of memory, and free blocks that
lie apart from one another are of no use to a request that needs more: external waste, which the
paged pool does not know.
"""

from __future__ import annotations

from itertools import groupby

from minipaged.cache.pool import BlockPool


class ContiguousBlockPool(BlockPool):
    """First fit: `allocate` takes the first run of free blocks that is long enough.

    For schedulers that allocate once a request (static, orca) and without a prefix cache: a table
    that grows by one block here and one there has no stretch to stay in.
    """

    __slots__ = ()

    def allocate(self, count: int) -> list[int]:
        """`count` blocks in a row, with refcount 1 each. Cost: O(num_blocks).

        MemoryError, and nothing has changed, if no run of free blocks is that long.
        """
        for first, length in self.runs():
            if length >= count:
                ids = list(range(first, first + count))
                self.share(ids)
                return ids
        raise MemoryError(
            f"{count} blocks in a row asked for, but the longest run has {self.longest_run} "
            f"({self.num_free} are free in all)"
        )

    def runs(self) -> list[tuple[int, int]]:
        """(first, length) of the stretches of free blocks, in order. O(num_blocks)."""
        found, first = [], 0
        for is_free, run in groupby(self.blocks, key=lambda block: block.refcount == 0):
            length = sum(1 for _ in run)
            if is_free:
                found.append((first, length))
            first += length
        return found

    @property
    def longest_run(self) -> int:
        """Blocks of the longest free stretch; 0 if all are held. O(num_blocks)."""
        return max((length for _, length in self.runs()), default=0)
