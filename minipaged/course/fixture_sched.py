"""A desk that drives a scheduler (SchedulerLike) step by step: no model, no engine, plain answers.

The manager is plain and slow, tokens are stand-ins that say whose they are. Every plan is looked
at, and so are the queues behind every commit: what is wrong comes back as a list with one sentence
in place of the answer. Only modules without torch and without a scheduler: this runs in the
learner's process too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minipaged.config import SamplingParams, SchedulerConfig
from minipaged.course.cost import Endless, lines_at_most
from minipaged.course.fixture_plans import fault_of_plan, fault_of_queues, fault_of_tokens
from minipaged.course.fixture_pools import PlainPool
from minipaged.plan import StepPlan, StepResult
from minipaged.request import FinishReason, Request

__all__ = ["DeskManager", "Endless", "SchedulerDesk"]
STOP = 0  # the stop token of every request at a desk
MAX_LINES = 10_000  # that a call may run: the scripts are small, so more means a loop without end


class DeskManager:
    """What a scheduler asks of a KVManager, on a PlainPool. tables: block ids by request id."""

    prefix = swap = None

    def __init__(self, num_blocks: int, block_size: int) -> None:
        self.num_blocks, self.block_size = num_blocks, block_size
        self.pool = PlainPool(num_blocks)
        self.tables: dict[str, list[int]] = {}

    @property
    def num_slots(self) -> int:
        """Tokens that the whole pool can hold."""
        return self.num_blocks * self.block_size

    def blocks_for(self, num_tokens: int) -> int:
        """Blocks that hold this many tokens."""
        return -(-num_tokens // self.block_size)

    def grow(self, request: Request, num_new: int) -> tuple[int, list[int]] | None:
        """As KVManager.grow: (first_block, entries), or None and nothing has changed."""
        if not self.reserve(request, request.num_computed_tokens + num_new):
            return None
        first, request.num_sent_blocks = request.num_sent_blocks, request.num_blocks
        request.num_inflight_tokens = num_new
        return first, self.tables[request.request_id][first:]

    def reserve(self, request: Request, num_tokens: int) -> bool:
        """As KVManager.reserve: all blocks that `num_tokens` tokens need, or False."""
        missing = self.blocks_for(num_tokens) - request.num_blocks
        if missing > self.pool.num_free:
            return False
        table = self.tables.setdefault(request.request_id, [])
        table += self.pool.allocate(max(missing, 0))
        request.num_blocks = len(table)
        request.ready_slots = len(table) * self.block_size
        return True

    def release(self, request: Request) -> None:
        """Free all of a request's blocks; it has nothing computed any more."""
        self.pool.free(self.tables.pop(request.request_id, []))
        request.num_computed_tokens = request.num_inflight_tokens = 0
        request.num_blocks = request.num_sent_blocks = request.ready_slots = 0

    def adopt(self, request: Request, block_ids: list[int]) -> None:
        """As KVManager.adopt, for a desk without a prefix cache: nothing is found."""

    def take_moves(self, plan: StepPlan) -> None:
        """None: nothing is shared at a desk, and there is no host."""


class SchedulerDesk:
    """Made with the scheduler's class, the size of the pool, and the two limits of a step.

    may_exceed: a request alone in its step may have more tokens than the budget.
    """

    def __init__(
        self,
        make: Callable[..., Any],
        num_blocks: int,
        block_size: int,
        max_num_seqs: int,
        max_num_batched_tokens: int,
        may_exceed: bool = False,
    ) -> None:
        self.manager = DeskManager(num_blocks, block_size)
        self.config = SchedulerConfig(
            max_num_seqs=max_num_seqs, max_num_batched_tokens=max_num_batched_tokens
        )
        self.scheduler = make(
            self.config,
            self.manager,
            victim=lambda running, needy: running[-1],
            admission=lambda needed, num_free: needed <= num_free,
            order=lambda waiting, manager: waiting[0],
        )
        self.may_exceed = may_exceed
        self.requests: dict[str, Request] = {}  # all that ever came, in order
        self.rows: dict[str, list[int]] = {}  # what an executor knows of the tables
        self.unnamed: list[str] = []  # ended, and in no plan's `finished` yet
        self.was_empty = False
        self._stops: dict[str, Sequence[int]] = {}
        self._endless: Endless | None = None  # once is enough: the same loop would be met again

    def add(
        self,
        request_id: str,
        prompt_len: int,
        max_tokens: int,
        stop_at: Sequence[int] = (),
        min_tokens: int = 0,
    ) -> None:
        """A request arrives. stop_at: which of its outputs, counted from 1, are the stop token.

        As in the engine its max_output_tokens is max_tokens, or what the whole pool has room for.
        """
        params = SamplingParams(
            max_tokens=max_tokens, min_tokens=min_tokens, stop_token_ids=(STOP,)
        )
        number = len(self.requests) + 1
        prompt = [1000 * number + place for place in range(prompt_len)]
        most = min(max_tokens, self.manager.num_slots + 1 - prompt_len)
        request = Request(request_id, prompt, params, max_output_tokens=most)
        self.requests[request_id], self._stops[request_id] = request, stop_at
        self._call(self.scheduler.add, request)

    def step(self) -> list[Any]:
        """schedule, execute, commit: (id, start, number of tokens, whether it samples) for each
        request of the step, in order of arrival; or a list with one sentence."""
        plan = self._call(self.scheduler.schedule)
        said = fault_of_plan(self, plan)
        if said:
            return [said]
        result = self._result(plan)
        known = {name: request.token_ids.copy() for name, request in self.requests.items()}
        live = self.live()
        changed = self._call(self.scheduler.commit, plan, result)
        self.unnamed += [name for name in live if self.requests[name].finish_reason is not None]
        said = fault_of_tokens(self, plan, result, known, changed) or fault_of_queues(self)
        return [said] if said else self._items(plan)

    def fail(self) -> list[Any]:
        """A step whose plan cannot be carried out: schedule, then retract. As step()."""
        plan = self._call(self.scheduler.schedule)
        said = fault_of_plan(self, plan)
        if not said:
            self._call(self.scheduler.retract, plan)
            self.unnamed = plan.finished + self.unnamed
            said = fault_of_queues(self)
        return [said] if said else self._items(plan)

    def abort(self, request_id: str) -> None:
        """The user of a request does not want it any more."""
        request = self.requests[request_id]
        if request.finish_reason is None:
            self._call(self.scheduler.finish, request, FinishReason.ABORT)
            self.unnamed.append(request_id)

    def queues(self) -> list[Any]:
        """Ids of those that run, ids of those that wait, and how many blocks are free."""
        both = (self.scheduler.running, self.scheduler.waiting)
        ids = [[request.request_id for request in queue] for queue in both]
        return [*ids, self.manager.pool.num_free]

    def outputs(self, request_id: str) -> list[int]:
        """Which of its outputs a request has: 1, 2, 3, …, and 0 for a stop token."""
        request = self.requests[request_id]
        return [token % 1000 for token in request.output_token_ids]

    def reason(self, request_id: str) -> str:
        """Why a request ended; "" while it has not."""
        return str(self.requests[request_id].finish_reason or "")

    def live(self) -> list[str]:
        """Ids of the requests that have not ended, in order of arrival."""
        return [name for name, one in self.requests.items() if one.finish_reason is None]

    def _result(self, plan: StepPlan) -> StepResult:
        """Output k of a request is 500,000 + k, unless it is the stop token."""
        tokens = {}
        for item in plan.items:
            if item.sample is not None:
                number = self.requests[item.request_id].num_output_tokens + 1
                is_stop = number in self._stops[item.request_id]
                tokens[item.request_id] = [STOP if is_stop else 500_000 + number]
        return StepResult(tokens, elapsed=1.0)

    def _items(self, plan: StepPlan) -> list[Any]:
        order = list(self.requests)
        items = sorted(plan.items, key=lambda item: order.index(item.request_id))
        return [
            (item.request_id, item.start_position, len(item.token_ids), item.sample is not None)
            for item in items
        ]

    def _call(self, method: Callable[..., Any], *args: Any) -> Any:
        if self._endless is not None:
            raise self._endless
        try:
            return lines_at_most(MAX_LINES, method, *args)
        except Endless as error:
            self._endless = error
            raise
