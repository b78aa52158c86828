"""Swapping: where blocks of preempted requests wait while the pool has no room for them.

A request is moved out as a whole and comes back as a whole. A block that several requests hold is
moved once and stays shared: on the host, because its copy is found by the device block; on the
device, because whoever comes back second takes the block that the first one brought, or that
another never gave up. Only full blocks are shared on the way back: the last one, if it is not
full, is written next, so each of its holders needs one of its own.

Source: Kwon et al. 2023 (PagedAttention), section 4.5; vLLM had it in V0
(vllm/core/block_manager.py) and dropped it in V1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from minipaged.cache.pool import BlockPool
from minipaged.plan import BlockMove, StepPlan
from minipaged.request import Request

if TYPE_CHECKING:
    from minipaged.cache.manager import KVManager


class SwapSpace:
    """Host blocks, counted as those of the pool are, and which device block each one copies.

    pool: host blocks by refcount. tables: host blocks of each request that is out, head first.
    """

    def __init__(self, num_blocks: int, manager: KVManager) -> None:
        self.num_blocks = num_blocks
        self.pool = BlockPool(num_blocks)
        self.tables: dict[str, list[int]] = {}
        self._manager = manager
        self._copy_of: dict[int, tuple[int, int]] = {}  # device block -> host block, its tokens
        self._device_of: dict[int, int] = {}  # host block -> device block that it copies
        self._out: list[BlockMove] = []
        self._in: list[BlockMove] = []

    def move_out(self, request: Request) -> bool:
        """Move what a running request has computed to the host and free its blocks.

        False, and nothing has changed, if it has computed nothing or too few host blocks are
        free. num_computed_tokens stays. Cost: O(blocks).
        """
        manager, size = self._manager, self._manager.block_size
        block_ids, num_settled = manager.contents_of(request)
        num_tokens = [
            min(size, request.num_computed_tokens - i * size) for i in range(len(block_ids))
        ]
        hosts = self._place(block_ids, num_tokens, num_settled)
        if hosts is None:
            return False
        self.tables[request.request_id] = hosts
        manager.close_table(request)
        return True

    def num_shared(self, request: Request) -> int:
        """Blocks that a request which is out need not bring back: others hold them. O(blocks)."""
        return sum(block is not None for block in self._held(request))

    def move_back(self, request: Request) -> None:
        """Bring a request's blocks back; the pool must have room for those that nobody holds.

        Its table is then a new one, which the executor has not met. Cost: O(blocks).
        """
        hosts, held = self.tables[request.request_id], self._held(request)
        block_ids = self._manager.open_shared(request, held)
        num_full = request.num_computed_tokens // self._manager.block_size
        for entry, (host, block_id) in enumerate(zip(hosts, block_ids, strict=True)):
            if held[entry] is None:
                self._in.append(BlockMove(host, block_id))
                if entry < num_full:
                    self._link(host, block_id, self._manager.block_size)
        self.drop(request)

    def drop(self, request: Request) -> None:
        """Give up what a request has on the host. O(blocks)."""
        self._free(self.tables.pop(request.request_id))

    def _free(self, hosts: Sequence[int]) -> None:
        self.pool.free(hosts)
        for host in hosts:
            if self.pool.refcount(host) == 0 and host in self._device_of:
                self._unlink(self._device_of[host])

    def shorten(self, request: Request) -> None:
        """Give up the host blocks behind what a request has computed by now. O(blocks)."""
        hosts = self.tables[request.request_id]
        count = self._manager.blocks_for(request.num_computed_tokens)
        self.tables[request.request_id], surplus = hosts[:count], hosts[count:]
        self._free(surplus)

    def forget(self, block_ids: Sequence[int]) -> None:
        """These device blocks were handed out again: their host copies copy them no more."""
        for block_id in block_ids:
            self._unlink(block_id)

    def take_moves(self, plan: StepPlan) -> None:
        """Add the moves out and in since the last call to a plan, in order."""
        plan.swap_out += self._out
        plan.swap_in += self._in
        self._out, self._in = [], []

    def _place(
        self, block_ids: Sequence[int], num_tokens: Sequence[int], num_settled: int
    ) -> list[int] | None:
        """Host blocks for these device blocks, with the moves that they need; None if too few."""
        hosts = [self._copy(b, n) for b, n in zip(block_ids, num_tokens, strict=True)]
        there = [host for host in hosts if host is not None]
        if not hosts or len(hosts) - len(there) > self.pool.num_free:
            return None
        self.pool.share(there)
        new = iter(self.pool.allocate(len(hosts) - len(there)))
        placed = []
        for entry, (block_id, host) in enumerate(zip(block_ids, hosts, strict=True)):
            if host is None:
                host = next(new)
                self._out.append(BlockMove(block_id, host))
                if entry < num_settled:
                    self._link(host, block_id, num_tokens[entry])
            placed.append(host)
        return placed

    def _copy(self, block_id: int, num_tokens: int) -> int | None:
        """The host block that holds these first tokens of a device block, if there is one."""
        host, count = self._copy_of.get(block_id, (None, 0))
        return host if count == num_tokens else None

    def _link(self, host: int, block_id: int, num_tokens: int) -> None:
        """The two blocks hold the same from now on, and each of them is the only copy of the other
        that is remembered."""
        self._unlink(block_id)
        if host in self._device_of:
            self._unlink(self._device_of[host])
        self._copy_of[block_id] = host, num_tokens
        self._device_of[host] = block_id

    def _unlink(self, block_id: int) -> None:
        copy = self._copy_of.pop(block_id, None)
        if copy is not None:
            del self._device_of[copy[0]]

    def _held(self, request: Request) -> list[int | None]:
        """Per table entry, the device block with its contents that somebody holds, or None."""
        num_full = request.num_computed_tokens // self._manager.block_size
        found: list[int | None] = []
        for entry, host in enumerate(self.tables[request.request_id]):
            block_id = self._device_of.get(host) if entry < num_full else None
            is_held = block_id is not None and self._manager.pool.refcount(block_id) > 0
            found.append(block_id if is_held else None)
        return found
