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
from minipaged.sched.admission import Gates
from minipaged.sched.orca import OrcaReservation
from minipaged.sched.order import ORDER_POLICIES
from minipaged.sched.preemption import PREEMPTION_POLICIES
from minipaged.sched.prefill_first import PrefillFirst
from minipaged.sched.scheduler import Scheduler
from minipaged.sched.static import StaticBatching
from minipaged.sched.victim import VICTIM_POLICIES

SCHEDULERS: dict[str, Callable[..., SchedulerLike]] = {
    "unified": Scheduler,
    "static": StaticBatching,
    "orca": OrcaReservation,
    "prefill-first": PrefillFirst,
}
PREFIX_CACHES = {"off": None, "hash": HashPrefixCache, "radix": RadixPrefixCache}


@dataclass(frozen=True)
class Components:
    """Factories (or, for victim, preemption and order, the policy itself).

    free_queue(num_blocks), block_pool(num_blocks, free_queue), block_table(block_size),
    admission(config).
    scheduler(config, manager, victim=…, preemption=…, admission=…, order=…): None takes the one
        that the configuration names.
    attention: the function that an executor computes attention with; None takes the backend
        that the configuration names.
    prefix_cache(block_size, pool): None takes the one that the configuration names; one given
        here is used whatever the configuration says.
    victim, preemption, order: None takes the policy that the configuration names.
    draft: its place; this version has none to put there and accepts none.
    """

    free_queue: Callable[[int], FreeQueueLike] = FreeQueue
    block_pool: Callable[[int, Callable[[int], FreeQueueLike]], BlockPoolLike] = BlockPool
    block_table: Callable[[int], BlockTableLike] = BlockTable
    attention: AttentionLike | None = None
    scheduler: Callable[..., SchedulerLike] | None = None
    victim: VictimPolicy | None = None
    preemption: PreemptionPolicy | None = None
    admission: Callable[[SchedulerConfig], AdmissionPolicy] = Gates
    order: OrderPolicy | None = None
    prefix_cache: Callable[[int, BlockPoolLike], PrefixCacheLike] | None = None
    draft: None = None

    def __post_init__(self) -> None:
        if self.draft is not None:
            raise ValueError("draft cannot be replaced in this version: leave it None")

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
            num_host_blocks=cache.num_host_blocks,
        )

    def make_scheduler(self, config: EngineConfig, manager: KVManager) -> SchedulerLike:
        """A scheduler on these parts."""
        chosen = config.scheduler
        usual = "lowest-priority" if chosen.order == "priority" else "last-admitted"
        make = self.scheduler or SCHEDULERS[chosen.scheduler]
        return make(
            chosen,
            manager,
            victim=self.victim or VICTIM_POLICIES[chosen.victim or usual],
            preemption=self.preemption or PREEMPTION_POLICIES[chosen.preemption](config.costs),
            admission=self.admission(chosen),
            order=self.order or ORDER_POLICIES[chosen.order](),
        )
