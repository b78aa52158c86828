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

from collections import deque

from minipaged.cache.manager import KVManager
from minipaged.config import SchedulerConfig
from minipaged.plan import StepPlan, StepResult
from minipaged.protocols import AdmissionPolicy, OrderPolicy, VictimPolicy
from minipaged.request import FinishReason, Request, RequestStatus, sample_id
from minipaged.sched.items import add_ready_items, make_item
from minipaged.sched.policy import first_come, full_admission, last_admitted


class Scheduler:
    """Decides what runs; holds every live request.

    waiting: new and preempted requests, the next to be admitted first. running: in order of
    admission. preempted: the victims of the latest schedule().
    """

    def __init__(
        self,
        config: SchedulerConfig,
        manager: KVManager,
        *,
        victim: VictimPolicy = last_admitted,
        admission: AdmissionPolicy | None = None,
        order: OrderPolicy | None = None,
    ) -> None:
        self.config = config
        self.manager = manager
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.preempted: list[Request] = []
        self._requests: dict[str, Request] = {}
        self._finished: list[str] = []
        self._victim = victim
        self._admits = admission or full_admission(config)
        self._order = order or first_come
        self._budget = 0
        self._step = 0
        self._seats_kept = 0  # for samples that running requests have still to branch into
        self._refused: tuple[Request | None, int] = (None, 0)  # and how many blocks were free

    def add(self, request: Request) -> None:
        """Queue a request behind all others. O(1), and O(tokens) for a cache that hashes them."""
        self._requests[request.request_id] = request
        self.waiting.append(request)
        if self.manager.prefix is not None:
            self.manager.prefix.prepare(request)

    def schedule(self) -> StepPlan:
        """Decide the next step. Cost: O(requests scheduled + blocks handed out)."""
        plan = self._open_plan()
        try:
            self._schedule_running(plan)
            self._schedule_waiting(plan)
            plan.copies = self.manager.take_copies()
        except BaseException:  # a policy failed, or somebody pressed Ctrl-C
            self.retract(plan)
            raise
        return plan

    def commit(self, plan: StepPlan, result: StepResult) -> list[Request]:
        """Take over what the plan computed; returns the requests that got tokens. O(items)."""
        requests, size = self._requests, self.manager.block_size
        changed, filled = [], []
        for request_id, token_ids, start, _, _, sample, _ in plan.items:
            request = requests[request_id]
            num_new = len(token_ids)
            computed = request.num_computed_tokens = start + num_new
            request.num_inflight_tokens = 0
            if computed % size < num_new:
                filled.append(request)
            if sample is not None:
                changed.append(request)
        if self.manager.prefix is not None:
            for request in filled:
                self.manager.prefix.publish(request)
        new_tokens = result.token_ids
        if self._seats_kept:
            changed, new_tokens = self._branch_off(changed, result)
        self._append(changed, new_tokens)
        return changed

    def finish(self, request: Request, reason: FinishReason) -> None:
        """End a request in whatever state it is and give back its blocks.

        Call it only while no plan is out. Cost: O(its blocks + length of its queue).
        """
        queue = self.running if request.status is RequestStatus.RUNNING else self.waiting
        queue.remove(request)
        self._leave(request, reason)

    def fork(self, parent: Request, child: Request) -> None:
        """Let a new request go on from where a live one is, between two steps.

        It shares the parent's blocks and runs beside it at once, if the parent runs and a place is
        free; else it is queued, and what the parent has computed is computed again. O(table).
        """
        if parent.status is not RequestStatus.RUNNING or self.num_seats >= self.config.max_num_seqs:
            self.add(child)
        else:
            self._requests[child.request_id] = child
            self._run_beside(parent, child)

    def retract(self, plan: StepPlan) -> None:
        """The plan was not carried out: all that run are preempted, so nothing is half done."""
        for request in reversed(self.running.copy()):
            self._preempt(request)
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
        if self.preempted:
            return
        manager, prefix = self.manager, self.manager.prefix
        limit = self.config.max_num_seqs
        while self.waiting and self._budget > 0 and self.num_seats < limit:
            request = self._order(self.waiting, manager)
            if self.num_seats + request.num_forks_due >= limit:
                return
            num_free = manager.pool.num_free
            if not num_free or (request is self._refused[0] and num_free <= self._refused[1]):
                return  # spare the look-up: one token at least has to be computed, as last time
            hits = [] if prefix is None else prefix.match(request)
            if not self._may_enter(request, hits):
                self._refused = request, num_free
                return
            manager.adopt(request, hits)
            if prefix is not None:
                prefix.admitted(request, request.num_computed_tokens)
            num_new = min(len(request.token_ids) - request.num_computed_tokens, self._budget)
            grown = manager.grow(request, num_new)
            assert grown is not None  # all known tokens fit, so this share of them does
            self._admit(request)
            plan.items.append(make_item(request, num_new, *grown))
            self._budget -= num_new

    @property
    def num_seats(self) -> int:
        """Places among max_num_seqs that are taken, or kept for samples to come."""
        return len(self.running) + self._seats_kept

    def _may_enter(self, request: Request, hits: list[int]) -> bool:
        """Whether all known tokens fit. A hit saves a block only while somebody holds it: an idle
        one stands on the free queue and has to be taken from there."""
        pool = self.manager.pool
        held = sum(pool.refcount(block_id) > 0 for block_id in hits)
        needed = self.manager.blocks_for(len(request.token_ids)) - held
        return needed <= pool.num_free and (not self.running or self._admits(needed, pool.num_free))

    def _admit(self, request: Request) -> None:
        if self.waiting[0] is request:
            self.waiting.popleft()
        else:
            self.waiting.remove(request)
        request.move_to(RequestStatus.RUNNING)
        self.running.append(request)
        self._seats_kept += request.num_forks_due

    def _branch_off(
        self, sampled: list[Request], result: StepResult
    ) -> tuple[list[Request], dict[str, list[int]]]:
        """Begin the further samples of prompts that are computed now; each shares the blocks.

        Returns all requests that get tokens, samples behind their parent, and the tokens.
        """
        changed, new_tokens = [], dict(result.token_ids)
        for parent in sampled:
            changed.append(parent)
            first_tokens = result.forks[parent.request_id] if parent.num_forks_due else []
            self._seats_kept -= parent.num_forks_due
            parent.num_forks_due = 0
            for number, token in enumerate(first_tokens, 1):
                branch = parent.branch(sample_id(parent.request_id, number))
                branch.sample_index = number
                self._requests[branch.request_id] = branch
                self._run_beside(parent, branch, number)
                changed.append(branch)
                new_tokens[branch.request_id] = [token]
        return changed, new_tokens

    def _run_beside(self, parent: Request, child: Request, place: int = 1) -> None:
        """The child takes its place behind the parent: as if admitted just after it."""
        self.manager.fork(parent, child)
        child.move_to(RequestStatus.RUNNING)
        self.running.insert(self.running.index(parent) + place, child)

    def _grow_or_preempt(
        self, request: Request, num_new: int, plan: StepPlan
    ) -> tuple[int, list[int]] | None:
        """Grow, preempting victims until there is room; None if the request had to go itself."""
        grown = self.manager.grow(request, num_new)
        while grown is None:
            victim = self._victim(self.running, request)
            if victim not in self.running:
                raise ValueError(f"the victim policy chose {victim!r}, which is not running")
            self._preempt(victim)
            self._take_back(victim, plan)
            if victim is request:
                return None
            grown = self.manager.grow(request, num_new)
        return grown

    def _preempt(self, victim: Request) -> None:
        """Drop what a request has computed and let it wait first in line."""
        self.running.remove(victim)
        self._seats_kept -= victim.num_forks_due
        victim.move_to(RequestStatus.PREEMPTED)
        victim.num_preemptions += 1
        self.manager.release(victim)
        self.waiting.appendleft(victim)
        self.preempted.append(victim)

    def _take_back(self, victim: Request, plan: StepPlan) -> None:
        """Remove a victim's item, if it was planned already, and give its budget back."""
        for index, item in enumerate(plan.items):
            if item.request_id == victim.request_id:
                del plan.items[index]
                self._budget += len(item.token_ids)
                return

    def _append(self, requests: list[Request], new_tokens: dict[str, list[int]]) -> None:
        """Add output tokens to each request, one by one, until one of them ends it."""
        for request in requests:
            known = request.token_ids
            for token in new_tokens[request.request_id]:
                known.append(token)
                if token in request.stop_token_ids or len(known) >= request.max_num_tokens:
                    self._end_if_due(request, token)
                    if request.status is RequestStatus.FINISHED:
                        break

    def _end_if_due(self, request: Request, token: int) -> None:
        """End a request whose last token is a stop token, or is the last that it may write."""
        if (
            token in request.stop_token_ids
            and request.num_output_tokens > request.params.min_tokens
        ):
            self.finish(request, FinishReason.STOP)
        elif request.num_tokens >= request.max_num_tokens:
            self.finish(request, FinishReason.LENGTH)

    def _leave(self, request: Request, reason: FinishReason) -> None:
        if request.status is RequestStatus.RUNNING:
            self._seats_kept -= request.num_forks_due
        request.finish(reason)
        self.manager.release(request)
        del self._requests[request.request_id]
        self._finished.append(request.request_id)
