"""A block table: the page table of one sequence."""

from __future__ import annotations

from collections.abc import Sequence


class BlockTable:
    """Which physical block holds each logical block of one sequence.

    Token p stands in logical block p // block_size, at offset p % block_size; its slot in the
    pool is block_ids[p // block_size] * block_size + p % block_size.
    """

    __slots__ = ("block_ids", "block_size")

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self.block_ids: list[int] = []

    @property
    def num_slots(self) -> int:
        """Tokens for which the table has room."""
        return len(self.block_ids) * self.block_size

    def append_blocks(self, block_ids: Sequence[int]) -> None:
        """Room for more tokens at the end. The table now holds these blocks."""
        self.block_ids.extend(block_ids)

    def slot(self, position: int) -> int:
        """The slot of the token at `position`. IndexError if the table has no room for it."""
        if not 0 <= position < self.num_slots:
            raise IndexError(f"position {position} is outside the table's {self.num_slots} slots")
        block_id = self.block_ids[position // self.block_size]
        return block_id * self.block_size + position % self.block_size

    def slot_mapping(self, start: int, end: int) -> list[int]:
        """The slots of the tokens start … end - 1. Cost: O(end - start)."""
        return [self.slot(position) for position in range(start, end)]

    def fork(self) -> BlockTable:
        """A table of its own with the same entries; the caller shares the blocks. O(entries)."""
        twin = BlockTable(self.block_size)
        twin.append_blocks(self.block_ids)
        return twin

    def replace(self, entry: int, block_id: int) -> int:
        """Let an entry lead to another block; returns the one it led to. O(1)."""
        old, self.block_ids[entry] = self.block_ids[entry], block_id
        return old

    def release(self) -> list[int]:
        """Empty the table; the caller takes over the blocks that it held, head first."""
        block_ids, self.block_ids = self.block_ids, []
        return block_ids

    def __len__(self) -> int:
        return len(self.block_ids)

    def __repr__(self) -> str:
        return f"BlockTable({self.block_ids}, block_size {self.block_size})"
