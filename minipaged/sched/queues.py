"""The requests of a scheduler: where each one stands, and what a step has made of it.

Deciding is not done here (scheduler.py): this is how a request comes, gets its tokens, branches and
leaves.
"""

from __future__ import annotations

from collections import deque

from minipaged.cache.manager import KVManager
from minipaged.config import SchedulerConfig
from minipaged.plan import StepPlan, StepResult
from minipaged.request import FinishReason, Request, RequestStatus, sample_id


class RequestQueues:
    """Holds every live request.

    waiting: new, preempted and swapped requests, the next to be admitted first. running: in order
    of admission. preempted: the victims of the latest schedule().
    """

    def __init__(self, config: SchedulerConfig, manager: KVManager) -> None:
        self.config = config
        self.manager = manager
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.preempted: list[Request] = []
        self._requests: dict[str, Request] = {}
        self._finished: list[str] = []
        self._changes = 0  # of the queues, but for requests that end while they run
        self._seats_kept = 0  # for samples that running requests have still to branch into

    @property
    def num_seats(self) -> int:
        """Places among max_num_seqs that are taken, or kept for samples to come."""
        return len(self.running) + self._seats_kept

    def add(self, request: Request) -> None:
        """Queue a request behind all others. O(1), and O(tokens) for a cache that hashes them."""
        self._requests[request.request_id] = request
        self.waiting.append(request)
        self._changes += 1
        if self.manager.prefix is not None:
            self.manager.prefix.prepare(request)

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
        is_running = request.status is RequestStatus.RUNNING
        (self.running if is_running else self.waiting).remove(request)
        self._changes += not is_running
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
