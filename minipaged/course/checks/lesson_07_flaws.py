"""Unified schedulers with one flaw each; lesson_07_words.py says what is wrong with them.

Unified has a method for every choice; a flaw is a subclass with another answer to one of them.
"""

from __future__ import annotations

from typing import Any

from minipaged.course.bookkeeping import Bookkeeping
from minipaged.plan import StepPlan
from minipaged.request import Request


class Unified(Bookkeeping):
    """Right, as it stands."""

    def schedule(self) -> StepPlan:  # type: ignore[override]
        plan = self.new_plan()
        self.left = self.config.max_num_batched_tokens
        self.phases(plan)
        return plan

    def phases(self, plan: StepPlan) -> None:
        self.serve(plan)
        if not self.preempted:
            self.let_in(plan)

    def serve(self, plan: StepPlan) -> None:
        for request in self.in_order():
            num_new = self.share(request)
            if num_new < 1 or request in self.preempted:
                continue
            grown = self.manager.grow(request, num_new)
            while grown is None:
                victim = self.victim_for(request)
                self.left += self.given_back(self.preempt(victim, plan))
                if victim is request:
                    break
                num_new = self.after_victim(request, num_new)
                grown = self.manager.grow(request, num_new)
            if grown is None:
                return
            self.compute(plan, request, num_new, grown)

    def let_in(self, plan: StepPlan) -> None:
        while self.waiting and self.left > 0 and self.has_seat():
            request = self.next_one()
            if request is None:
                return
            num_new = self.share(request)
            grown = self.manager.grow(request, num_new) if num_new > 0 else None
            if grown is None:
                return
            self.admit(request)
            self.compute(plan, request, num_new, grown)

    def in_order(self) -> list[Request]:
        return self.running.copy()

    def share(self, request: Request) -> int:
        return min(self.left, request.num_tokens - request.num_computed_tokens)

    def victim_for(self, request: Request) -> Request:
        return self._victim(self.running, request)

    def given_back(self, tokens: int) -> int:
        return tokens

    def after_victim(self, request: Request, num_new: int) -> int:
        return num_new

    def has_seat(self) -> bool:
        return len(self.running) < self.config.max_num_seqs

    def next_one(self) -> Request | None:
        return self.waiting[0] if self.may_enter(self.waiting[0]) else None

    def draws(self, request: Request, num_new: int) -> bool:
        return request.num_computed_tokens + num_new == request.num_tokens

    def compute(self, plan: StepPlan, request: Request, num_new: int, grown: Any) -> None:
        self.put(plan, request, num_new, grown, self.draws(request, num_new))
        self.left -= num_new


class PromptsFirst(Unified):
    def phases(self, plan: StepPlan) -> None:
        self.let_in(plan)
        already = {item.request_id for item in plan.items}
        self.running.sort(key=lambda request: request.request_id in already)  # stable
        self.fresh: set[str] = already
        self.serve(plan)

    def share(self, request: Request) -> int:
        fresh: set[str] = getattr(self, "fresh", set())
        return 0 if request.request_id in fresh else super().share(request)

    def let_in(self, plan: StepPlan) -> None:
        self.fresh = set()
        super().let_in(plan)


class AlwaysDraws(Unified):
    def draws(self, request: Request, num_new: int) -> bool:
        return True


class DrawsBehindThePrompt(Unified):
    def draws(self, request: Request, num_new: int) -> bool:
        return request.num_computed_tokens + num_new >= request.num_prompt_tokens


class DrawsDecodesOnly(Unified):
    def draws(self, request: Request, num_new: int) -> bool:
        return num_new == 1


class WholePrompts(Unified):
    def share(self, request: Request) -> int:
        needed = request.num_tokens - request.num_computed_tokens
        return needed if needed <= self.left else 0


class BudgetForEach(Unified):
    def compute(self, plan: StepPlan, request: Request, num_new: int, grown: Any) -> None:
        super().compute(plan, request, num_new, grown)
        self.left += num_new


class DecodesAreFree(Unified):
    def compute(self, plan: StepPlan, request: Request, num_new: int, grown: Any) -> None:
        super().compute(plan, request, num_new, grown)
        self.left += num_new == 1


class OwnBudgets(Unified):
    def let_in(self, plan: StepPlan) -> None:
        self.left = self.config.max_num_batched_tokens
        super().let_in(plan)


class PromptOnly(Unified):
    def share(self, request: Request) -> int:
        known = request.num_prompt_tokens
        if request.num_computed_tokens >= known:
            known = request.num_tokens
        return min(self.left, known - request.num_computed_tokens)


class DecodeIsOne(Unified):
    def share(self, request: Request) -> int:
        if request.num_output_tokens:
            return min(self.left, 1)
        return super().share(request)


class OwnVictim(Unified):
    def victim_for(self, request: Request) -> Request:
        return self.running[-1]


class PreemptsItself(Unified):
    def victim_for(self, request: Request) -> Request:
        return request


class KeepsTheBudget(Unified):
    def given_back(self, tokens: int) -> int:
        return 0


class NoSeats(Unified):
    def has_seat(self) -> bool:
        return True


class OneSeatMore(Unified):
    def has_seat(self) -> bool:
        return len(self.running) <= self.config.max_num_seqs


class Overtakes(Unified):
    def next_one(self) -> Request | None:
        return next((one for one in self.waiting if self.may_enter(one)), None)


class FirstChunkFits(Unified):
    def next_one(self) -> Request | None:
        request = self.waiting[0]
        free = self.manager.pool.num_free
        return request if self.manager.blocks_for(self.share(request)) <= free else None


class OneAStep(Unified):
    def let_in(self, plan: StepPlan) -> None:
        before = len(self.running)
        self.has_seat = lambda: len(self.running) == before  # type: ignore[method-assign]
        super().let_in(plan)


class SharesAgain(Unified):
    def after_victim(self, request: Request, num_new: int) -> int:
        return self.share(request)


class NewestFirst(Unified):
    def in_order(self) -> list[Request]:
        return self.running[::-1]


class WalksOverChanges(Unified):
    def in_order(self) -> list[Request]:
        return self.running
