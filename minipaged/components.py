"""The parts of an engine that can be replaced: one field, one factory each.

    LLM("tutor", components=replace(Components(), block_pool=MyPool))

Nothing is registered anywhere and nothing is patched: what stands in this object is what runs.
Each field's contract is a Protocol in minipaged/protocols.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from minipaged.cache.block import FreeQueue
from minipaged.cache.hash_prefix import HashPrefixCache
from minipaged.cache.manager import KVManager
from minipaged.cache.pool import BlockPool
from minipaged.cache.radix_prefix import RadixPrefixCache
from minipaged.cache.table import BlockTable
from minipaged.config import CacheConfig, EngineConfig, SchedulerConfig
from minipaged.protocols import (
    AdmissionPolicy,
    AttentionLike,
    BlockPoolLike,
    BlockTableLike,
    FreeQueueLike,
    OrderPolicy,
    PreemptionPolicy,
    PrefixCacheLike,
    SchedulerLike,
    VictimPolicy,
)
from minipaged.sched.order import LongestPrefixFirst
from minipaged.sched.policy import first_come, full_admission, last_admitted, recompute
from minipaged.sched.scheduler import Scheduler

ORDERS: dict[str, Callable[[], OrderPolicy]] = {
    "fcfs": lambda: first_come,
    "lpm": LongestPrefixFirst,
}
PREFIX_CACHES = {"off": None, "hash": HashPrefixCache, "radix": RadixPrefixCache}


@dataclass(frozen=True)
class Components:
    """Factories (or, for victim and preemption, the policy itself).

    free_queue(num_blocks), block_pool(num_blocks, free_queue), block_table(block_size),
    scheduler(config, manager, victim=…, admission=…), admission(config).
    attention: the function that an executor computes attention with; None takes the backend
        that the configuration names.
    prefix_cache(block_size, pool): None takes the one that the configuration names; one given
        here is used whatever the configuration says.
    order: which waiting request is admitted next; None takes the configuration's.
    draft: its place; this version has none to put there and accepts none.
    """

    free_queue: Callable[[int], FreeQueueLike] = FreeQueue
    block_pool: Callable[[int, Callable[[int], FreeQueueLike]], BlockPoolLike] = BlockPool
    block_table: Callable[[int], BlockTableLike] = BlockTable
    attention: AttentionLike | None = None
    scheduler: Callable[..., SchedulerLike] = Scheduler
    victim: VictimPolicy = last_admitted
    preemption: PreemptionPolicy = recompute
    admission: Callable[[SchedulerConfig], AdmissionPolicy] = full_admission
    order: OrderPolicy | None = None
    prefix_cache: Callable[[int, BlockPoolLike], PrefixCacheLike] | None = None
    draft: None = None

    def __post_init__(self) -> None:
        if self.draft is not None:
            raise ValueError("draft cannot be replaced in this version: leave it None")
        if self.preemption is not recompute:
            raise ValueError("preemption is by recompute only in this version: leave it as it is")

    def make_manager(self, cache: CacheConfig) -> KVManager:
        """A KV manager on these parts. cache.num_blocks must be set."""
        if cache.num_blocks is None:
            raise ValueError("num_blocks is not set: give the number of blocks in the pool")
        return KVManager(
            cache.num_blocks,
            cache.block_size,
            free_queue=self.free_queue,
            block_pool=self.block_pool,
            block_table=self.block_table,
            prefix_cache=self.prefix_cache or PREFIX_CACHES[cache.prefix_caching],
        )

    def make_scheduler(self, config: EngineConfig, manager: KVManager) -> SchedulerLike:
        """A scheduler on these parts."""
        return self.scheduler(
            config.scheduler,
            manager,
            victim=self.victim,
            admission=self.admission(config.scheduler),
            order=self.order or ORDERS[config.scheduler.order](),
        )
