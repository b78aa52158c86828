"""All of a scheduler but its decision: queues, blocks given back, tokens taken over, and so on.

For exercise 07.2, whose own part is which request computes how many tokens in a step. It is the
engine's scheduler, with the methods that decide taken out.
"""

from __future__ import annotations

from typing import NoReturn

from minipaged.plan import SampleSpec, ScheduledItem, StepPlan
from minipaged.request import Request
from minipaged.sched.scheduler import Scheduler


class Bookkeeping(Scheduler):
    """add, commit, finish, fork and retract as SchedulerLike wants them, and what a decision needs.

    waiting, running and preempted are those of the scheduler that uses it.
    """

    def new_plan(self) -> StepPlan:
        """An empty plan for the next step; `preempted` is empty again."""
        return self._open_plan()

    def put(
        self,
        plan: StepPlan,
        request: Request,
        num_new: int,
        grown: tuple[int, list[int]],
        sample: bool,
    ) -> None:
        """The request computes its next `num_new` tokens in this step.

        grown: what manager.grow returned for them. sample: draw the token that follows the last of
        them. ValueError for a number below 1.
        """
        if num_new < 1:
            name = request.request_id
            raise ValueError(f"put({name}, {num_new}): a planned request computes 1 or more")
        start, params = request.num_computed_tokens, request.params
        end = start + num_new
        index, count = end - request.num_prompt_tokens, request.num_forks_due + 1
        spec = SampleSpec(params, request.seed, request.sample_index, index, count, params.logprobs)
        tokens = request.token_ids[start:end]
        item = ScheduledItem(
            request.request_id, tokens, start, *grown, sample=spec if sample else None, draft_len=0
        )
        plan.items.append(item)
        self.manager.take_moves(plan)

    def may_enter(self, request: Request) -> bool:
        """Whether memory lets a waiting request in: all its known tokens fit now."""
        return super()._may_enter(request, [])

    def admit(self, request: Request) -> None:
        """A waiting request runs from now on, behind all others."""
        self._admit(request)

    def preempt(self, victim: Request, plan: StepPlan) -> int:
        """Take a running request's blocks; it waits first in line, with nothing computed.

        If it is in this plan already, its item is taken out. Returns how many tokens that item had,
        else 0.
        """
        if victim not in self.running:
            raise ValueError(f"the victim {victim!r} is not running: choose one of those that are")
        planned = plan.num_tokens
        self._preempt(victim, may_swap=False)
        self._take_back(victim, plan)
        return planned - plan.num_tokens

    def schedule(self) -> NoReturn:
        """Deciding is not done here."""
        raise NotImplementedError("what runs in a step is yours to decide: write schedule")

    def _schedule_running(self, plan: StepPlan) -> NoReturn:
        self.schedule()

    def _schedule_waiting(self, plan: StepPlan) -> NoReturn:
        self.schedule()

    def _grow_or_preempt(self, request: Request, num_new: int, plan: StepPlan) -> NoReturn:
        self.schedule()
