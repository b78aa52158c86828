"""What every executor is, and the block tables that it keeps between steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from minipaged.plan import BlockMove, ScheduledItem, StepPlan, StepResult


class Executor(Protocol):
    """Carries plans out. It sees plans and nothing else of the engine.

    The order inside a step is swap_out, swap_in, copies, items. Every item with a SampleSpec
    yields at least one token; the others yield none. A plan that names a slot outside the pool,
    or a row that the executor was never sent, raises and is a fault of the scheduler.
    """

    def execute(self, plan: StepPlan) -> StepResult:
        """Compute the plan. Cost: what the plan holds, plus reading each item's context."""
        ...


def require_in_pools(moves: Iterable[BlockMove], num_source: int, num_target: int) -> None:
    """ValueError for a move from or to a block that its pool does not have."""
    for move in moves:
        for block_id, num_blocks in ((move.source, num_source), (move.target, num_target)):
            if not 0 <= block_id < num_blocks:
                raise ValueError(f"{move} leaves the pool of {num_blocks} blocks")


class BlockRows:
    """The executor's copy of each live request's block table, kept up to date from plan items."""

    __slots__ = ("_rows", "num_blocks")

    def __init__(self, num_blocks: int) -> None:
        self.num_blocks = num_blocks
        self._rows: dict[str, list[int]] = {}

    def update(self, item: ScheduledItem) -> list[int]:
        """Apply an item's new entries and return the request's row (do not change it).

        Raises ValueError if the entries leave a gap or name a block outside the pool.
        Cost: O(entries sent).
        """
        first, ids = item.first_block, item.block_ids
        if first == 0:
            if not ids:
                raise ValueError(f"request {item.request_id!r} sends a table without blocks")
            row = self._rows[item.request_id] = []
        else:
            row = self._rows.get(item.request_id, [])
            if first > len(row):
                raise ValueError(
                    f"request {item.request_id!r}: entries start at logical block {first}, "
                    f"but only {len(row)} are known; send the whole table (first_block 0)"
                )
        for block_id in ids:
            if not 0 <= block_id < self.num_blocks:
                raise ValueError(
                    f"request {item.request_id!r}: block {block_id} is outside the pool of "
                    f"{self.num_blocks} blocks"
                )
        row[first:] = ids
        return row

    def update_for(self, item: ScheduledItem, block_size: int) -> list[int]:
        """`update`, and ValueError if the row then lacks a slot for one of the item's tokens."""
        row = self.update(item)
        end, slots = item.start_position + len(item.token_ids), len(row) * block_size
        if not item.token_ids or item.start_position < 0:
            raise ValueError(
                f"request {item.request_id!r}: {len(item.token_ids)} tokens at position "
                f"{item.start_position}; an item needs at least one token, from position 0 on"
            )
        if end > slots:
            raise ValueError(
                f"request {item.request_id!r}: {end} tokens, but its table has {slots} slots: "
                f"position {end - 1} has no slot, because its {len(row)} blocks of {block_size} "
                "hold no more; send the block first"
            )
        return row

    def forget(self, request_ids: list[str]) -> None:
        """Drop rows of finished requests; unknown ids are ignored."""
        for request_id in request_ids:
            self._rows.pop(request_id, None)

    def __len__(self) -> int:
        return len(self._rows)
