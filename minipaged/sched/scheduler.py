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
        self._by_chunk = config.admission == "chunk"
        is_low_off = isinstance(self._gate, Gates) and not self._gate.low
        self._must_shed = None if is_low_off else getattr(self._gate, "must_shed", None)
        self._budget = 0
        self._step = 0
        self._refused: tuple[int, int, int] | None = None  # see _is_refused

    def schedule(self) -> StepPlan:
        """Decide the next step.

        Cost: O(requests scheduled + blocks handed out), and what the order policy looks at: one
        request for "fcfs"; all that wait for "priority", 32 prompts for "lpm", if anything has
        changed since the head of the queue was refused.
        """
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

        What it was to move to the host has not been moved, so those victims compute again too. In
        whatever line schedule() was interrupted, every request is in the queue afterwards.
        """
        victims = {request.request_id for request in self.preempted}
        for request in self.waiting:
            if request.is_swapped and request.request_id in victims:
                request.num_swaps -= 1
                self._drop(request)
            elif request.status is RequestStatus.RUNNING:
                self._drop(request)
        for request in reversed(self.running):
            if request.status is RequestStatus.RUNNING:
                self._queue_first(request)
                self._drop(request)
        self.running.clear()
        self._seats_kept = 0
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

    @property
    def num_out(self) -> int:
        """Waiting requests that have to stay out for some steps more. O(waiting)."""
        return sum(request.not_before >= self._step for request in self.waiting)

    def _schedule_running(self, plan: StepPlan) -> None:
        if self._must_shed is not None:
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
            request = None if self._is_refused() else self._next()
            if request is None or self.num_seats + request.num_forks_due >= limit:
                return
            if not self._let_in(request):
                return
            num_new = min(len(request.token_ids) - request.num_computed_tokens, self._budget)
            grown = self.manager.grow(request, num_new)
            assert grown is not None  # whoever was let in has room for this share
            self._admit(request)
            plan.items.append(make_item(request, num_new, *grown))
            self._budget -= num_new

    def _is_refused(self) -> bool:
        """Whether asking again is spared: nothing is free, or no more than at the last refusal,
        and since then nobody came or went and nothing became known."""
        num_free, before = self.manager.pool.num_free, self._refused
        if not num_free or before is None or not self.running:
            return not num_free
        return num_free <= before[0] and before[1:] == (self._changes, self._num_publishes())

    def _num_publishes(self) -> int:
        return 0 if self.manager.prefix is None else self.manager.prefix.num_publishes

    def _next(self) -> Request | None:
        """The request to be admitted next; None if all that wait have to stay out for now."""
        if not (self.config.backoff_steps and self.running):
            return self._order(self.waiting, self.manager)
        due = [request for request in self.waiting if request.not_before < self._step]
        return self._order(due, self.manager) if due else None

    def _let_in(self, request: Request) -> bool:
        """Give a waiting request the blocks that hold a part of it already, if it may enter."""
        prefix, is_out = self.manager.prefix, request.is_swapped
        hits = prefix.match(request) if prefix is not None and not is_out else []
        if not self._may_enter(request, hits):
            if not self._by_chunk and not self.config.backoff_steps:
                num_free = self.manager.pool.num_free
                self._refused = num_free, self._changes, self._num_publishes()
            return False
        if self.manager.swap is not None and is_out:
            self.manager.swap.move_back(request)
            return True
        if hits:
            self.manager.adopt(request, hits)
        if prefix is not None:
            prefix.admitted(request, request.num_computed_tokens)
        return True

    def _may_enter(self, request: Request, hits: list[int]) -> bool:
        """Whether its known tokens fit, all or the first chunk. A hit saves a block only while
        somebody holds it: an idle one stands on the free queue and has to be taken from there."""
        manager, num_tokens = self.manager, len(request.token_ids)
        held = sum(manager.pool.refcount(block_id) > 0 for block_id in hits) if hits else 0
        if manager.swap is not None and request.is_swapped:
            held = manager.swap.num_shared(request)
        there = len(hits) * manager.block_size + request.num_computed_tokens
        if self._by_chunk:
            num_tokens = min(num_tokens, there + self._budget)
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
        self._changes += 1

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
        must_shed, pool = self._must_shed, self.manager.pool
        while must_shed is not None and len(self.running) > 1 and must_shed(pool.num_free):
            self._preempt(self._choose_victim(self.running[0]))

    def _choose_victim(self, needy: Request) -> Request:
        victim = self._victim(self.running, needy)
        if victim not in self.running:
            raise ValueError(f"the victim policy chose {victim!r}, which is not running")
        return victim

    def _preempt(self, victim: Request, may_swap: bool = True) -> None:
        """Take a request's blocks; it waits first in line."""
        is_to_move = may_swap and self._wants_swap(victim)  # asked before anything has changed
        self._queue_first(victim)
        self.running.remove(victim)
        self._seats_kept -= victim.num_forks_due
        steps_out = backoff(self.config.backoff_steps, victim.num_preemptions)
        victim.not_before = self._step + steps_out if steps_out else 0
        swap = self.manager.swap
        if is_to_move and swap is not None and swap.move_out(victim):
            victim.move_to(RequestStatus.SWAPPED)
            victim.num_swaps += 1
        else:
            self._drop(victim)

    def _queue_first(self, victim: Request) -> None:
        self.preempted.append(victim)
        self.waiting.appendleft(victim)
        victim.num_preemptions += 1
        self._changes += 1

    def _wants_swap(self, victim: Request) -> bool:
        """Whether the policy wants a victim on the host, and its limit allows it."""
        limit, how = self.config.max_preemptions, self._preemption(victim, victim.num_blocks)
        if how not in ("recompute", "swap"):
            raise ValueError(f"the preemption policy said {how!r}: say 'recompute' or 'swap'")
        return how == "swap" and (limit is None or victim.num_swaps < limit)

    def _drop(self, victim: Request) -> None:
        """Give up what a request has computed; it will be computed again."""
        victim.num_lost_tokens = max(victim.num_lost_tokens, victim.num_computed_tokens)
        self.manager.release(victim)
        victim.move_to(RequestStatus.PREEMPTED)

    def _take_back(self, victim: Request, plan: StepPlan) -> None:
        """Remove a victim's item, if it was planned already, and give its budget back."""
        for index, item in enumerate(plan.items):
            if item.request_id == victim.request_id:
                del plan.items[index]
                self._budget += len(item.token_ids)
                return
