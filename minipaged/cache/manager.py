"""The KV manager: block tables of live requests over one pool, and the check that all is well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from minipaged.cache.block import FreeQueue, in_order
from minipaged.cache.pool import BlockPool
from minipaged.cache.table import BlockTable
from minipaged.protocols import BlockPoolLike, BlockTableLike, FreeQueueLike
from minipaged.request import Request


class InvariantError(AssertionError):
    """The cache's bookkeeping contradicts itself; the message lists every contradiction."""


class KVManager:
    """Gives requests slots for their tokens and takes them back.

    A request has a table from its first `grow` until `release`. Growing is all or nothing.
    hash_to_block is the index of a prefix cache: empty while there is none.
    """

    def __init__(
        self,
        num_blocks: int,
        block_size: int,
        *,
        free_queue: Callable[[int], FreeQueueLike] = FreeQueue,
        block_pool: Callable[[int, Callable[[int], FreeQueueLike]], BlockPoolLike] = BlockPool,
        block_table: Callable[[int], BlockTableLike] = BlockTable,
    ) -> None:
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.pool = block_pool(num_blocks, free_queue)
        self.requests: dict[str, Request] = {}
        self.tables: dict[str, BlockTableLike] = {}
        self.hash_to_block: dict[bytes, int] = {}
        self._make_table = block_table

    @property
    def num_slots(self) -> int:
        """Tokens that the whole pool can hold."""
        return self.num_blocks * self.block_size

    def blocks_for(self, num_tokens: int) -> int:
        """Blocks that hold this many tokens: ceil(num_tokens / block_size)."""
        return -(-num_tokens // self.block_size)

    def grow(self, request: Request, num_new: int) -> tuple[int, list[int]] | None:
        """Make room for the next `num_new` tokens behind the computed ones.

        Returns (first_block, entries): where in the table the new entries start, and what they
        are. None if too few blocks are free; then nothing has changed. Cost: O(new blocks).
        """
        request_id = request.request_id
        table = self.tables.get(request_id)
        held = len(table.block_ids) if table is not None else 0
        missing = -((request.num_computed_tokens + num_new) // -self.block_size) - held
        entries: list[int] = []
        if missing > 0:
            if missing > self.pool.num_free:
                return None
            new_ids = self.pool.allocate(missing)
            if table is None:
                table = self.tables[request_id] = self._make_table(self.block_size)
                self.requests[request_id] = request
            table.append_blocks(new_ids)
            entries = table.block_ids[held:]
        request.num_inflight_tokens = num_new
        return held, entries

    def release(self, request: Request) -> None:
        """Free all of a request's blocks; it has nothing computed any more. Cost: O(blocks)."""
        table = self.tables.get(request.request_id)
        if table is not None:
            self.pool.free(table.release())
            del self.tables[request.request_id], self.requests[request.request_id]
        request.num_computed_tokens = request.num_inflight_tokens = 0

    def check(self) -> None:
        """Verify every invariant of the cache; InvariantError names all that are broken.

        Cost: O(blocks). Meant for tests, fuzzers and lessons, after every step.
        """
        problems = [*self._check_counts(), *self._check_requests(), *self._check_hashes()]
        if problems:
            raise InvariantError("; ".join(problems))

    def _check_counts(self) -> Iterator[str]:
        """free + held = total; refcount = holders; queued exactly when the refcount is 0."""
        pool, total = self.pool, self.num_blocks
        holders = Counter(b for table in self.tables.values() for b in table.block_ids)
        queue = in_order(pool.free_queue, total)
        queued = set(queue)
        if len(queue) != len(queued):
            twice = [b for b, n in Counter(queue).items() if n > 1]
            yield f"blocks {twice} are on the free queue more than once"
        if len(queued) != pool.num_free:
            yield f"the free queue counts {pool.num_free} blocks but holds {len(queued)}"
        if len(queued) + len(holders) != total:
            yield f"{len(queued)} free + {len(holders)} held blocks are not {total}"
        for block_id in range(total):
            count = pool.refcount(block_id)
            if count != holders[block_id]:
                yield f"block {block_id} has refcount {count} but {holders[block_id]} holders"
            if (block_id in queued) != (count == 0):
                place = "on" if block_id in queued else "off"
                yield f"block {block_id} has refcount {count} but is {place} the free queue"
            if (block_id in pool.free_queue) != (block_id in queued):
                yield f"the free queue contradicts itself about block {block_id}"

    def _check_requests(self) -> Iterator[str]:
        """Computed tokens have slots; a block about to be written is unshared and unhashed."""
        for request_id, request in self.requests.items():
            ids, computed = self.tables[request_id].block_ids, request.num_computed_tokens
            slots, planned = len(ids) * self.block_size, computed + request.num_inflight_tokens
            if planned > slots:
                yield f"request {request_id!r} has {planned} tokens in {slots} slots"
            for index, block_id in enumerate(ids):
                position, slot = index * self.block_size, block_id * self.block_size
                if self.tables[request_id].slot(position) != slot:
                    yield f"token {position} of request {request_id!r} is not in slot {slot}"
            first, last = computed // self.block_size, self.blocks_for(planned)
            for block_id in ids[first:last] if request.num_inflight_tokens else ():
                if self.pool.refcount(block_id) != 1 or self.pool.block_hash(block_id) is not None:
                    yield f"block {block_id} is about to be written but is shared or hashed"

    def _check_hashes(self) -> Iterator[str]:
        """Every hash maps to a block with that hash; every such block is full and computed."""
        for block_hash, block_id in self.hash_to_block.items():
            if self.pool.block_hash(block_id) != block_hash:
                yield f"a hash leads to block {block_id}, which does not have that hash"
        for request_id, request in self.requests.items():
            full = request.num_computed_tokens // self.block_size
            for block_id in self.tables[request_id].block_ids[full:]:
                if self.pool.block_hash(block_id) is not None:
                    yield f"block {block_id} of request {request_id!r} is hashed but not full"
