"""The unified-budget scheduler: every step shares one token budget among all requests.

There is no prefill phase and no decode phase. Each request has known tokens and computed tokens;
a step lets the second number chase the first. Running requests come first, in the order of their
admission; what is left of the budget admits waiting ones. A prompt longer than the rest of the
budget is cut into chunks by that rule alone. A request that asks for several samples becomes that
many sequences in the step that computes the end of its prompt; from then on each is on its own.

Rules: those of vLLM's V1 scheduler for first come, first served (vllm/v1/core/sched/scheduler.py);
tests hold the two equal, step by step.
"""

from __future__ import annotations

from minipaged.cache.manager import KVManager
from minipaged.config import SchedulerConfig
from minipaged.plan import StepPlan
from minipaged.protocols import AdmissionPolicy, OrderPolicy, PreemptionPolicy, VictimPolicy
from minipaged.request import Request, RequestStatus
from minipaged.sched.admission import Gates, backoff
from minipaged.sched.items import add_ready_items, make_item
from minipaged.sched.order import first_come
from minipaged.sched.preemption import recompute
from minipaged.sched.queues import RequestQueues
from minipaged.sched.victim import last_admitted


class Scheduler(RequestQueues):
    """Decides what runs. The policies: whom to preempt and how, when to let in, and whom next."""

    def __init__(
        self,
        config: SchedulerConfig,
        manager: KVManager,
        *,
        victim: VictimPolicy = last_admitted,
        preemption: PreemptionPolicy = recompute,
        admission: AdmissionPolicy | None = None,
        order: OrderPolicy = first_come,
    ) -> None:
        super().__init__(config, manager)
        self._victim = victim
        self._preemption = preemption
        self._gate = Gates(config) if admission is None else admission
        self._order = order
        self._budget = 0
        self._step = 0
        self._refused: tuple[Request | None, int] = (None, 0)  # and how many blocks were free

    def schedule(self) -> StepPlan:
        """Decide the next step. Cost: O(requests scheduled + blocks handed out)."""
        plan = self._open_plan()
        try:
            self._schedule_running(plan)
            self._schedule_waiting(plan)
            self.manager.take_moves(plan)
        except BaseException:  # a policy failed, or somebody pressed Ctrl-C
            self.retract(plan)
            raise
        return plan

    def retract(self, plan: StepPlan) -> None:
        """The plan was not carried out: all that run are preempted, so nothing is half done.

        What it was to move to the host has not been moved, so those victims compute again too.
        """
        for victim in self.preempted:
            if victim.is_swapped:
                victim.move_to(RequestStatus.PREEMPTED)
                self._lose(victim)
        for request in reversed(self.running.copy()):
            self._preempt(request, may_swap=False)
        self.manager.take_moves(StepPlan(plan.step))
        self._finished = plan.finished + self._finished

    def _open_plan(self) -> StepPlan:
        plan = StepPlan(self._step, finished=self._finished)
        self._step += 1
        self._finished = []
        self.preempted = []
        self._budget = self.config.max_num_batched_tokens
        if self.manager.prefix is not None:
            self.manager.prefix.step = plan.step
        return plan

    def _schedule_running(self, plan: StepPlan) -> None:
        self._shed()
        running, items = self.running, plan.items
        # every running request before the current one has exactly one item, so their number
        # is the position in `running`, also after a victim's item was taken back
        while True:
            self._budget = add_ready_items(running, items, self._budget)
            if len(items) == len(running) or not self._budget:
                return
            request = running[len(items)]
            num_new = min(request.num_tokens - request.num_computed_tokens, self._budget)
            grown = self._grow_or_preempt(request, num_new, plan)
            if grown is None:
                return
            items.append(make_item(request, num_new, *grown))
            self._budget -= num_new

    def _schedule_waiting(self, plan: StepPlan) -> None:
        """Admit requests while there are places, budget and memory; the first refusal ends it."""
        limit = self.config.max_num_seqs
        while self.waiting and self._budget > 0 and self.num_seats < limit and not self.preempted:
            request = self._order(self.waiting, self.manager)
            if self.num_seats + request.num_forks_due >= limit or not self._let_in(request):
                return
            num_new = min(len(request.token_ids) - request.num_computed_tokens, self._budget)
            grown = self.manager.grow(request, num_new)
            assert grown is not None  # whoever was let in has room for this share
            self._admit(request)
            plan.items.append(make_item(request, num_new, *grown))
            self._budget -= num_new

    def _let_in(self, request: Request) -> bool:
        """Give a waiting request the blocks that hold a part of it already, if it may enter.

        Whatever is cached, one token at least has to be computed: without a free block, or with no
        more of them than when this request was refused last, the look-up is spared.
        """
        num_free, refused, prefix = self.manager.pool.num_free, self._refused, self.manager.prefix
        if not num_free or (request is refused[0] and num_free <= refused[1]):
            return False
        if self.running and self._step <= request.not_before:
            return False
        is_out = request.is_swapped
        hits = prefix.match(request) if prefix is not None and not is_out else []
        if not self._may_enter(request, hits):
            if self.config.admission == "full":
                self._refused = request, num_free
            return False
        if self.manager.swap is not None and is_out:
            self.manager.swap.move_back(request)
            return True
        self.manager.adopt(request, hits)
        if prefix is not None:
            prefix.admitted(request, request.num_computed_tokens)
        return True

    def _may_enter(self, request: Request, hits: list[int]) -> bool:
        """Whether its known tokens fit, all or the first chunk. A hit saves a block only while
        somebody holds it: an idle one stands on the free queue and has to be taken from there."""
        manager, num_tokens = self.manager, len(request.token_ids)
        held = sum(manager.pool.refcount(block_id) > 0 for block_id in hits)
        if manager.swap is not None and request.is_swapped:
            held = manager.swap.num_shared(request)
        if self.config.admission == "chunk":
            computed = len(hits) * manager.block_size + request.num_computed_tokens
            num_tokens = min(num_tokens, computed + self._budget)
        needed, num_free = manager.blocks_for(num_tokens) - held, manager.pool.num_free
        return needed <= num_free and (not self.running or self._gate(needed, num_free))

    def _admit(self, request: Request) -> None:
        if self.waiting[0] is request:
            self.waiting.popleft()
        else:
            self.waiting.remove(request)
        request.move_to(RequestStatus.RUNNING)
        self.running.append(request)
        self._seats_kept += request.num_forks_due

    def _grow_or_preempt(
        self, request: Request, num_new: int, plan: StepPlan
    ) -> tuple[int, list[int]] | None:
        """Grow, preempting victims until there is room; None if the request had to go itself."""
        grown = self.manager.grow(request, num_new)
        while grown is None:
            victim = self._choose_victim(request)
            self._preempt(victim)
            self._take_back(victim, plan)
            if victim is request:
                return None
            grown = self.manager.grow(request, num_new)
        return grown

    def _shed(self) -> None:
        """Preempt while the admission policy finds too few blocks free, down to one request."""
        must_shed = getattr(self._gate, "must_shed", None)
        while must_shed and len(self.running) > 1 and must_shed(self.manager.pool.num_free):
            self._preempt(self._choose_victim(self.running[0]))

    def _choose_victim(self, needy: Request) -> Request:
        victim = self._victim(self.running, needy)
        if victim not in self.running:
            raise ValueError(f"the victim policy chose {victim!r}, which is not running")
        return victim

    def _preempt(self, victim: Request, may_swap: bool = True) -> None:
        """Take a request's blocks; it waits first in line."""
        self.running.remove(victim)
        self._seats_kept -= victim.num_forks_due
        if may_swap and self._swap_out(victim):
            victim.move_to(RequestStatus.SWAPPED)
            victim.num_swaps += 1
        else:
            victim.move_to(RequestStatus.PREEMPTED)
            self._lose(victim)
        victim.num_preemptions += 1
        steps_out = backoff(self.config.backoff_steps, victim.num_preemptions)
        victim.not_before = self._step + steps_out if steps_out else 0
        self.waiting.appendleft(victim)
        self.preempted.append(victim)

    def _swap_out(self, victim: Request) -> bool:
        """Move a victim to the host, if the policy and its limit allow it and there is room."""
        swap, limit = self.manager.swap, self.config.max_preemptions
        how = self._preemption(victim, victim.num_blocks)
        if how not in ("recompute", "swap"):
            raise ValueError(f"the preemption policy said {how!r}: say 'recompute' or 'swap'")
        if how == "recompute" or swap is None or (limit is not None and victim.num_swaps >= limit):
            return False
        return swap.move_out(victim)

    def _lose(self, victim: Request) -> None:
        """Drop what a request has computed; it will be computed again."""
        victim.num_lost_tokens = max(victim.num_lost_tokens, victim.num_computed_tokens)
        self.manager.release(victim)

    def _take_back(self, victim: Request, plan: StepPlan) -> None:
        """Remove a victim's item, if it was planned already, and give its budget back."""
        for index, item in enumerate(plan.items):
            if item.request_id == victim.request_id:
                del plan.items[index]
                self._budget += len(item.token_ids)
                return
