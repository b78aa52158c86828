"""The KV manager: block tables of live requests over one pool.

A table grows as its request computes. Two requests may share blocks, because one branched off the
other or because a prefix cache found what a third had left; before a shared block is written, its
writer gets a copy of its own (copy-on-write).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from minipaged.cache.block import FreeQueue
from minipaged.cache.invariants import InvariantError, problems_of
from minipaged.cache.pool import BlockPool
from minipaged.cache.prefix import PrefixIndex
from minipaged.cache.swap import SwapSpace
from minipaged.cache.table import BlockTable
from minipaged.plan import BlockMove, StepPlan
from minipaged.protocols import BlockPoolLike, BlockTableLike, FreeQueueLike, PrefixCacheLike
from minipaged.request import Request

MakePrefixCache = Callable[[int, BlockPoolLike], PrefixCacheLike]


__all__ = ["InvariantError", "KVManager"]


class KVManager:
    """Gives requests slots for their tokens and takes them back.

    A request has a table from its first `adopt` or `grow` until `release`. Growing is all or
    nothing. prefix: the prefix cache with its counters, swap: the host blocks; None while there
    are none.
    num_entries: entries of all tables together; more than the blocks held if some are shared.
    """

    def __init__(
        self,
        num_blocks: int,
        block_size: int,
        *,
        free_queue: Callable[[int], FreeQueueLike] = FreeQueue,
        block_pool: Callable[[int, Callable[[int], FreeQueueLike]], BlockPoolLike] = BlockPool,
        block_table: Callable[[int], BlockTableLike] = BlockTable,
        prefix_cache: MakePrefixCache | None = None,
        num_host_blocks: int = 0,
    ) -> None:
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.pool = block_pool(num_blocks, free_queue)
        self.prefix = None if prefix_cache is None else PrefixIndex(prefix_cache, self)
        self.swap = SwapSpace(num_host_blocks, self) if num_host_blocks else None
        self.requests: dict[str, Request] = {}
        self.tables: dict[str, BlockTableLike] = {}
        self.num_entries = 0
        self._copies: dict[str, BlockMove] = {}
        self._make_table = block_table

    @property
    def num_slots(self) -> int:
        """Tokens that the whole pool can hold."""
        return self.num_blocks * self.block_size

    @property
    def num_saved_blocks(self) -> int:
        """Blocks that sharing saves now: table entries less blocks held. O(1)."""
        return self.num_entries - (self.num_blocks - self.pool.num_free)

    def blocks_for(self, num_tokens: int) -> int:
        """Blocks that hold this many tokens: ceil(num_tokens / block_size)."""
        return -(-num_tokens // self.block_size)

    def grow(self, request: Request, num_new: int) -> tuple[int, list[int]] | None:
        """Make room for the next `num_new` tokens behind the computed ones.

        Returns (first_block, entries): table entries that the executor does not know, and where
        they begin. None if too few blocks are free; then nothing has changed. Cost: O(new blocks),
        and O(table) for a request that the executor has not met.
        """
        if request.num_computed_tokens + num_new > request.ready_slots:
            return self._grow(request, num_new)
        request.num_inflight_tokens = num_new
        return request.num_blocks, []

    def reserve(self, request: Request, num_tokens: int) -> bool:
        """Give a request all blocks that `num_tokens` tokens need, ahead of time.

        False, and nothing has changed, if the pool cannot hand out that many. O(new blocks).
        """
        missing = max(self.blocks_for(num_tokens) - request.num_blocks, 0)
        try:
            block_ids = self._allocate(missing) if missing else []
        except MemoryError:  # too few are free, or, in a contiguous pool, too few in a row
            return False
        table = self.tables.get(request.request_id)
        if table is None:
            table = self._open_table(request)
        self._append(request, table, block_ids)
        return True

    def fork(self, parent: Request, child: Request) -> None:
        """Give `child` a table of the blocks that `parent` has computed; none is copied now.

        Needs no free block, so it cannot fail for lack of memory. Both copy the last block before
        they write into it, if it is not full and the other still holds it. O(table).
        """
        table = self.tables[parent.request_id]
        twin = self._twin_of(table)
        self.pool.share(twin.block_ids)
        self.requests[child.request_id], self.tables[child.request_id] = child, twin
        child.num_computed_tokens = parent.num_computed_tokens
        child.num_published_blocks = parent.num_published_blocks
        child.num_blocks = parent.num_blocks
        self.num_entries += child.num_blocks
        parent.ready_slots = child.ready_slots = 0

    def take_copies(self) -> list[BlockMove]:
        """The copies that growing has asked for since the last call, in order."""
        copies, self._copies = list(self._copies.values()), {}
        return copies

    def take_moves(self, plan: StepPlan) -> None:
        """Add the copies and swaps that were asked for since the last call to a plan."""
        if self._copies:
            plan.copies += self.take_copies()
        if self.swap is not None:
            self.swap.take_moves(plan)

    def release(self, request: Request) -> None:
        """Free all of a request's blocks, also those on the host; it has nothing computed any more.

        Cost: O(blocks).
        """
        if request.request_id in self.tables:
            self.close_table(request)
        elif self.swap is not None and request.request_id in self.swap.tables:
            self.swap.drop(request)
        request.num_computed_tokens = 0

    def close_table(self, request: Request) -> None:
        """Free a request's blocks in the pool; what it has computed stays counted. O(blocks)."""
        self.num_entries -= request.num_blocks
        self.pool.free(self.tables[request.request_id].release())
        del self.tables[request.request_id], self.requests[request.request_id]
        self._copies.pop(request.request_id, None)
        request.num_inflight_tokens = 0
        request.num_blocks = request.num_sent_blocks = request.ready_slots = 0
        request.num_published_blocks = 0

    def contents_of(self, request: Request) -> tuple[list[int], int]:
        """The blocks that hold what a request has computed, before this step's copies are made.

        And how many of them are settled: the one that is to be copied first is not. O(blocks).
        """
        num_blocks = self.blocks_for(request.num_computed_tokens)
        block_ids = list(self.tables[request.request_id].block_ids[:num_blocks])
        copy = self._copies.get(request.request_id)
        if copy is None or copy.target not in block_ids:
            return block_ids, num_blocks
        entry = block_ids.index(copy.target)
        block_ids[entry] = copy.source
        return block_ids, entry

    def open_shared(self, request: Request, held: Sequence[int | None]) -> list[int]:
        """A table of blocks that others hold, and of new ones where `held` has None. O(blocks)."""
        self.pool.share([block_id for block_id in held if block_id is not None])
        new = iter(self._allocate(sum(block_id is None for block_id in held)))
        block_ids = [next(new) if block_id is None else block_id for block_id in held]
        self._append(request, self._open_table(request), block_ids)
        return block_ids

    def adopt(self, request: Request, block_ids: list[int]) -> None:
        """Begin a request's table with blocks that hold its first tokens already. O(blocks)."""
        if block_ids:
            self.pool.share(block_ids)
            self._append(request, self._open_table(request), block_ids)
            request.num_published_blocks = len(block_ids)
            request.num_computed_tokens = len(block_ids) * self.block_size

    def exchange(self, request: Request, entry: int, block_id: int) -> None:
        """Let table entry `entry` be another block with the same contents; free the old one."""
        self.pool.share([block_id])
        self.pool.free([_replace(self.tables[request.request_id], entry, block_id)])
        request.num_sent_blocks = min(request.num_sent_blocks, entry)
        request.ready_slots = 0

    def check(self) -> None:
        """Verify every invariant of the cache; InvariantError names all that are broken.

        Cost: O(blocks). Meant for tests, fuzzers and lessons, after every step.
        """
        problems = list(problems_of(self))
        if problems:
            raise InvariantError("; ".join(problems))

    def _grow(self, request: Request, num_new: int) -> tuple[int, list[int]] | None:
        """grow, where blocks or copies are needed or the executor has to be told something."""
        missing = self.blocks_for(request.num_computed_tokens + num_new) - request.num_blocks
        tail = None if request.ready_slots else self._tail_to_copy(request)
        if max(missing, 0) + (tail is not None) > self.pool.num_free:
            return None
        table = self.tables.get(request.request_id)
        if table is None:
            table = self._open_table(request)
        if tail is not None:
            self._copy(request, table, tail)
        if missing > 0:
            table.append_blocks(self._allocate(missing))
            request.num_blocks += missing
            self.num_entries += missing
        first, request.num_sent_blocks = request.num_sent_blocks, request.num_blocks
        request.ready_slots = request.num_blocks * self.block_size
        request.num_inflight_tokens = num_new
        return first, table.block_ids[first:]

    def _tail_to_copy(self, request: Request) -> int | None:
        """The entry of a block that is about to be written but that others hold or know.

        Only a fork or a step back leads to one, and both leave ready_slots at 0: only then is this
        asked.
        """
        entry = request.num_computed_tokens // self.block_size
        if entry >= request.num_blocks:
            return None
        block_id = self.tables[request.request_id].block_ids[entry]
        is_own = self.pool.refcount(block_id) == 1 and self.pool.block_hash(block_id) is None
        return None if is_own else entry

    def _copy(self, request: Request, table: BlockTableLike, entry: int) -> None:
        (target,) = self._allocate(1)
        source = _replace(table, entry, target)
        self.pool.free([source])
        self._copies[request.request_id] = BlockMove(source, target)
        request.num_sent_blocks = min(request.num_sent_blocks, entry)
        request.num_published_blocks = min(request.num_published_blocks, entry)

    def _append(self, request: Request, table: BlockTableLike, block_ids: list[int]) -> None:
        """Put blocks that the request holds behind its others."""
        table.append_blocks(list(block_ids))
        request.num_blocks += len(block_ids)
        self.num_entries += len(block_ids)

    def _allocate(self, count: int) -> list[int]:
        block_ids = self.pool.allocate(count)
        if self.prefix is not None:
            self.prefix.forget(block_ids)
        if self.swap is not None:
            self.swap.forget(block_ids)
        return block_ids

    def _twin_of(self, table: BlockTableLike) -> BlockTableLike:
        if hasattr(table, "fork"):
            return table.fork()
        twin = self._make_table(self.block_size)
        twin.append_blocks(list(table.block_ids))
        return twin

    def _open_table(self, request: Request) -> BlockTableLike:
        self.requests[request.request_id] = request
        table = self.tables[request.request_id] = self._make_table(self.block_size)
        return table


def _replace(table: BlockTableLike, entry: int, block_id: int) -> int:
    """Write a table entry; returns what stood there."""
    if hasattr(table, "replace"):
        return table.replace(entry, block_id)
    old, table.block_ids[entry] = table.block_ids[entry], block_id
    return old
