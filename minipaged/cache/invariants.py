"""What must hold in the cache at any moment, checked from outside, block by block.

Free + held = total; a refcount is the number of tables that hold the block; a block is queued
exactly when its refcount is 0; what is about to be written is unshared and unknown to the prefix
cache; computed tokens have slots; what the prefix cache knows is full and computed. The host's
blocks are counted likewise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from minipaged.cache.block import in_order
from minipaged.protocols import BlockPoolLike

if TYPE_CHECKING:
    from minipaged.cache.manager import KVManager


class InvariantError(AssertionError):
    """The cache's bookkeeping contradicts itself; the message lists every contradiction."""


def problems_of(manager: KVManager) -> Iterator[str]:
    """Every contradiction, in words. Cost: O(blocks)."""
    tables = [table.block_ids for table in manager.tables.values()]
    yield from _counts(manager.pool, manager.num_blocks, tables)
    num_entries = sum(map(len, tables))
    if num_entries != manager.num_entries:
        yield f"the tables have {num_entries} entries, not {manager.num_entries}"
    yield from _requests(manager)
    yield from _known(manager)
    if manager.swap is not None:
        hosts = (manager.swap.pool, manager.swap.num_blocks, manager.swap.tables.values())
        yield from (f"on the host, {problem}" for problem in _counts(*hosts))


def _counts(pool: BlockPoolLike, total: int, tables: Iterable[Sequence[int]]) -> Iterator[str]:
    """free + held = total; refcount = holders; queued exactly when the refcount is 0."""
    holders = Counter(block_id for table in tables for block_id in table)
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


def _requests(manager: KVManager) -> Iterator[str]:
    """Computed tokens have slots; a block about to be written is unshared and unknown."""
    pool, size = manager.pool, manager.block_size
    for request_id, request in manager.requests.items():
        table = manager.tables[request_id]
        ids, computed = table.block_ids, request.num_computed_tokens
        slots, planned = len(ids) * size, computed + request.num_inflight_tokens
        if planned > slots:
            yield f"request {request_id!r} has {planned} tokens in {slots} slots"
        for index, block_id in enumerate(ids):
            position, slot = index * size, block_id * size
            if table.slot(position) != slot:
                yield f"token {position} of request {request_id!r} is not in slot {slot}"
        first, last = computed // size, manager.blocks_for(planned)
        for block_id in ids[first:last] if request.num_inflight_tokens else ():
            if pool.refcount(block_id) != 1 or pool.block_hash(block_id) is not None:
                yield f"block {block_id} is about to be written but is shared or hashed"


def _known(manager: KVManager) -> Iterator[str]:
    """The pool and the prefix cache agree on what is known, and all of it is full and computed."""
    known = set(manager.prefix.cache.known_blocks()) if manager.prefix is not None else set()
    for block_id in range(manager.num_blocks):
        if (manager.pool.block_hash(block_id) is not None) != (block_id in known):
            yield f"pool and prefix cache disagree whether block {block_id} is known"
    for request_id, request in manager.requests.items():
        full = request.num_computed_tokens // manager.block_size
        for block_id in manager.tables[request_id].block_ids[full:]:
            # a request that steps back writes its last token once more, into a copy
            is_last = not request.num_inflight_tokens and request.ready_slots == 0
            if manager.pool.block_hash(block_id) is not None and not is_last:
                yield f"block {block_id} of request {request_id!r} is hashed but not full"
