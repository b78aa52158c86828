"""A block table that walks through its slots one by one instead of computing where a token is."""

from __future__ import annotations


class PlainTable:
    """A block table (BlockTableLike) without address arithmetic: right, and slow."""

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self.block_ids: list[int] = []

    def walk(self) -> list[int]:
        """All slots in the order of the tokens: block after block, place after place."""
        size = self.block_size
        return [slot for b in self.block_ids for slot in range(b * size, (b + 1) * size)]

    @property
    def num_slots(self) -> int:
        """How many slots the walk visits."""
        return len(self.walk())

    def append_blocks(self, block_ids: list[int]) -> None:
        """Copy the ids to the end."""
        self.block_ids += block_ids

    def slot(self, position: int) -> int:
        """The slot that the walk visits after `position` others."""
        if position < 0:
            raise IndexError("no token stands before the first")
        return self.walk()[position]

    def slot_mapping(self, start: int, end: int) -> list[int]:
        """One slot after the other."""
        return [self.slot(position) for position in range(start, end)]

    def release(self) -> list[int]:
        """Hand over the list and begin another."""
        block_ids, self.block_ids = self.block_ids, []
        return block_ids

    def __len__(self) -> int:
        return len(self.block_ids)
