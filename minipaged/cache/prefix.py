"""A prefix cache at work: what the manager asks it, and what is counted meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from minipaged.protocols import BlockPoolLike, PrefixCacheLike
from minipaged.request import Request

if TYPE_CHECKING:
    from minipaged.cache.manager import KVManager


@dataclass(slots=True)
class PrefixStats:
    """queries: tokens of admitted requests that a hit was looked for; hits: those found. Neither
    counts a request that comes back after preemption: its own blocks are no hit. evictions: known
    blocks that were handed out again. lifetimes: for each of them, steps since it was published.
    """

    queries: int = 0
    hits: int = 0
    evictions: int = 0
    lifetimes: list[int] = field(default_factory=list)


class PrefixIndex:
    """Asks the cache and counts. step: number of the step being planned; the scheduler sets it."""

    def __init__(
        self, make: Callable[[int, BlockPoolLike], PrefixCacheLike], manager: KVManager
    ) -> None:
        self.cache = make(manager.block_size, manager.pool)
        self.stats = PrefixStats()
        self.step = 0
        self._manager = manager
        self._since: dict[int, int] = {}

    def match(self, request: Request) -> list[int]:
        """Known blocks that hold the beginning of a request; at least one token stays to compute.

        Cost: O(tokens of the hit).
        """
        return self.cache.match(request.token_ids, request.cache_key)

    def admitted(self, request: Request, num_hit_tokens: int) -> None:
        """Count a request that was let in."""
        if request.num_preemptions == 0:
            self.stats.queries += request.num_tokens
            self.stats.hits += num_hit_tokens

    def publish(self, request: Request) -> None:
        """Make what the request has computed known, as far as blocks are full. O(new blocks)."""
        manager, since = self._manager, self._since
        first = request.num_published_blocks
        last = request.num_computed_tokens // manager.block_size
        block_ids = manager.tables[request.request_id].block_ids
        if first and block_ids[first - 1] not in since:
            first = 0
        swaps = self.cache.publish(request.token_ids, block_ids, first, last, request.cache_key)
        request.num_published_blocks = last
        for block_id in block_ids[first:last]:
            since[block_id] = self.step
        for entry, block_id in swaps:
            since.pop(block_ids[entry], None)
            manager.exchange(request, entry, block_id)

    def forget(self, block_ids: list[int]) -> None:
        """These blocks were handed out again; their old contents are lost. O(blocks)."""
        since = self._since
        for block_id in block_ids:
            if block_id in since:
                self.stats.evictions += 1
                self.stats.lifetimes.append(self.step - since.pop(block_id))
                self.cache.forget(block_id)
