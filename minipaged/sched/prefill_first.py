"""Prompts before outputs: a step computes either waiting prompts or the next token of all others.

New requests get their first token soon; those that run wait meanwhile, and the longer the prompt,
the longer the gap in their texts. It is this stall that chunked prefill removes.

Rule: the default of vLLM before its V1 engine (vllm/core/scheduler.py, without chunked prefill).
"""

from __future__ import annotations

from typing import Any

from minipaged.plan import StepPlan
from minipaged.request import Request, RequestStatus
from minipaged.sched.items import make_item
from minipaged.sched.scheduler import Scheduler


class PrefillFirst(Scheduler):
    """Two kinds of steps on paged memory: as many whole prompts as fit, else outputs alone.

    A prompt that the rest of the budget does not hold begins a step of its own later. One that is
    longer than the whole budget is cut; its chunks fill step after step, and no output is written
    until the last of them. A request that comes back after preemption counts as a prompt.

    A prompt enters only if all of it fits, whatever the configuration says of admission. If it
    entered by its first chunk, two prompts could take each other's blocks for ever: no output is
    written while a prompt is computed, so the one that is whole gets nothing out of being so.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._by_chunk = False

    def _schedule_running(self, plan: StepPlan) -> None:
        self._shed()
        for request in [request for request in self.running if _in_prompt(request)]:
            self._go_on(request, plan)
        super()._schedule_waiting(plan)
        self._refused = None  # it may have been the budget, and the next step has a new one
        if not plan.items:
            super()._schedule_running(plan)

    def _schedule_waiting(self, plan: StepPlan) -> None:
        """Nothing is left to do: prompts had their turn before the running requests."""

    def _may_enter(self, request: Request, hits: list[int]) -> bool:
        there = request.num_computed_tokens + len(hits) * self.manager.block_size
        num_new = request.num_tokens - there
        is_first = self._budget == self.config.max_num_batched_tokens
        return (num_new <= self._budget or is_first) and super()._may_enter(request, hits)

    def _go_on(self, request: Request, plan: StepPlan) -> None:
        """The next chunk of a prompt that was too long for one step."""
        num_new = min(request.num_tokens - request.num_computed_tokens, self._budget)
        if request.status is not RequestStatus.RUNNING or not num_new:
            return  # the victim of one before it, or none of the budget is left
        grown = self._grow_or_preempt(request, num_new, plan)
        if grown is not None:
            plan.items.append(make_item(request, num_new, *grown))
            self._budget -= num_new


def _in_prompt(request: Request) -> bool:
    """More is to be computed than one token: the latest output, or the last of a prompt."""
    return request.num_computed_tokens + 1 < request.num_tokens
