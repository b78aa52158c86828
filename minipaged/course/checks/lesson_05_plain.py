"""A forking block table that walks through its slots instead of computing where a token is."""

from __future__ import annotations

from minipaged.course.checks.lesson_03_plain import PlainTable
from minipaged.course.fixture_pools import PlainPool


class PlainForking(PlainTable):
    """The table of exercise 05.1 without address arithmetic: right, and slow."""

    def fork(self) -> PlainForking:
        """Entry after entry into a table of its own."""
        twin = type(self)(self.block_size)
        for block_id in self.block_ids:
            twin.append_blocks([block_id])
        return twin

    def replace(self, entry: int, block_id: int) -> int:
        """A new list, with the other block in the place of the old one."""
        before = self.block_ids
        self.block_ids = [*before[:entry], block_id, *before[entry + 1 :]]
        return before[entry]

    def write(self, position: int, pool: PlainPool) -> tuple[int, int] | None:
        """Look at the slot where the walk arrives, and at who holds its block."""
        if position == self.num_slots:
            self.append_blocks(pool.allocate(1))
            return None
        old = self.slot(position) // self.block_size
        if pool.refcount(old) == 1:
            return None
        (new,) = pool.allocate(1)
        self.replace(self.block_ids.index(old), new)
        pool.free([old])
        return old, new
