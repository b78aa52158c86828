"""A prefix cache at work: what the manager asks it, and what is counted meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from minipaged.protocols import BlockPoolLike, LinkedPrefixCacheLike, PrefixCacheLike
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
    """Asks the cache and counts. step: number of the step being planned; the scheduler sets it.
    num_publishes: times that something became known."""

    def __init__(
        self, make: Callable[[int, BlockPoolLike], PrefixCacheLike], manager: KVManager
    ) -> None:
        self.cache = make(manager.block_size, manager.pool)
        self.stats = PrefixStats()
        self.step = self.num_publishes = 0
        self._manager = manager
        self._block_size = manager.block_size
        self._since: dict[int, int] = {}
        self._linked: LinkedPrefixCacheLike | None = None
        if hasattr(self.cache, "extend_links"):
            self._linked = cast("LinkedPrefixCacheLike", self.cache)

    def match(self, request: Request) -> list[int]:
        """Known blocks that hold the beginning of a request; at least one token stays to compute.

        Cost: O(tokens of the hit); O(blocks of it) if the cache has links and prepare was called.
        """
        if self._linked is None:
            return self.cache.match(request.token_ids, request.cache_key)
        num_full = self.prepare(request)
        return self._linked.match_links(request.block_links[:num_full])

    def prepare(self, request: Request) -> int:
        """Hash what is known of a request, if the cache can keep that: all but its last token,
        which may still be exchanged. Returns its full blocks so far. O(tokens new since)."""
        num_full, links = (len(request.token_ids) - 1) // self._block_size, request.block_links
        if self._linked is not None and len(links) < num_full:
            self._linked.extend_links(links, request.token_ids, num_full, request.cache_key)
        return num_full

    def admitted(self, request: Request, num_hit_tokens: int) -> None:
        """Count a request that was let in."""
        if request.num_preemptions == 0:
            self.stats.queries += len(request.token_ids)
            self.stats.hits += num_hit_tokens

    def publish(self, request: Request) -> None:
        """Make what the request has computed known, as far as blocks are full. O(new blocks)."""
        manager, since = self._manager, self._since
        first = request.num_published_blocks
        last = request.num_computed_tokens // self._block_size
        token_ids, key, links = request.token_ids, request.cache_key, request.block_links
        block_ids = manager.tables[request.request_id].block_ids
        if first and block_ids[first - 1] not in since:
            first = 0
        ids = block_ids[first:last]
        if self._linked is not None:
            self._linked.extend_links(links, token_ids, last, key)
            self._linked.publish_links(links[first:last], ids)
            swaps: list[tuple[int, int]] = []
        else:
            swaps = self.cache.publish(token_ids, block_ids, first, last, key)
        request.num_published_blocks = last
        self.num_publishes += 1
        step = self.step
        for block_id in ids:
            since[block_id] = step
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
