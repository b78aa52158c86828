"""Unified schedulers with one flaw each. An answer that is that of one of them is told by its flaw.

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

    def has_seat(self) -> bool:
        return len(self.running) < self.config.max_num_seqs

    def next_one(self) -> Request | None:
        return self.waiting[0] if self.may_enter(self.waiting[0]) else None

    def draws(self, request: Request, num_new: int) -> bool:
        return request.num_computed_tokens + num_new == request.num_tokens

    def compute(self, plan: StepPlan, request: Request, num_new: int, grown: Any) -> None:
        self.put(plan, request, num_new, grown, self.draws(request, num_new))
        self.left -= num_new


class _PromptsFirst(Unified):
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


class _AlwaysDraws(Unified):
    def draws(self, request: Request, num_new: int) -> bool:
        return True


class _DrawsBehindThePrompt(Unified):
    def draws(self, request: Request, num_new: int) -> bool:
        return request.num_computed_tokens + num_new >= request.num_prompt_tokens


class _DrawsDecodesOnly(Unified):
    def draws(self, request: Request, num_new: int) -> bool:
        return num_new == 1


class _WholePrompts(Unified):
    def share(self, request: Request) -> int:
        needed = request.num_tokens - request.num_computed_tokens
        return needed if needed <= self.left else 0


class _BudgetForEach(Unified):
    def compute(self, plan: StepPlan, request: Request, num_new: int, grown: Any) -> None:
        super().compute(plan, request, num_new, grown)
        self.left += num_new


class _DecodesAreFree(Unified):
    def compute(self, plan: StepPlan, request: Request, num_new: int, grown: Any) -> None:
        super().compute(plan, request, num_new, grown)
        self.left += num_new == 1


class _OwnBudgets(Unified):
    def let_in(self, plan: StepPlan) -> None:
        self.left = self.config.max_num_batched_tokens
        super().let_in(plan)


class _PromptOnly(Unified):
    def share(self, request: Request) -> int:
        known = request.num_prompt_tokens
        if request.num_computed_tokens >= known:
            known = request.num_tokens
        return min(self.left, known - request.num_computed_tokens)


class _DecodeIsOne(Unified):
    def share(self, request: Request) -> int:
        if request.num_output_tokens:
            return min(self.left, 1)
        return super().share(request)


class _OwnVictim(Unified):
    def victim_for(self, request: Request) -> Request:
        return self.running[-1]


class _PreemptsItself(Unified):
    def victim_for(self, request: Request) -> Request:
        return request


class _KeepsTheBudget(Unified):
    def given_back(self, tokens: int) -> int:
        return 0


class _NoSeats(Unified):
    def has_seat(self) -> bool:
        return True


class _OneSeatMore(Unified):
    def has_seat(self) -> bool:
        return len(self.running) <= self.config.max_num_seqs


class _Overtakes(Unified):
    def next_one(self) -> Request | None:
        return next((one for one in self.waiting if self.may_enter(one)), None)


class _FirstChunkFits(Unified):
    def next_one(self) -> Request | None:
        request = self.waiting[0]
        free = self.manager.pool.num_free
        return request if self.manager.blocks_for(self.share(request)) <= free else None


class _OneAStep(Unified):
    def let_in(self, plan: StepPlan) -> None:
        before = len(self.running)
        self.has_seat = lambda: len(self.running) == before  # type: ignore[method-assign]
        super().let_in(plan)


class _NewestFirst(Unified):
    def in_order(self) -> list[Request]:
        return self.running[::-1]


class _WalksOverChanges(Unified):
    def in_order(self) -> list[Request]:
        return self.running


TOO_MANY_TOKENS = (
    "More was given than the budget has left. There is one for all together: a decode takes one "
    "token of it, a chunk its length, and those that wait share what those that run have left."
)
TOO_MANY_RUN = (
    "More run than max_num_seqs allows: it is the most that may run, the new one included."
)
FLAWS: tuple[tuple[type[Unified], str], ...] = (
    (
        _AlwaysDraws,
        "A token was drawn behind a chunk that is not the last. What follows the prompt is known "
        "once all of it is computed; sample only where the last known token is computed.",
    ),
    (
        _DrawsBehindThePrompt,
        "A request that comes back computes its outputs again as well, and they are known. The "
        "next token is drawn behind the last known token, not behind the prompt.",
    ),
    (
        _DrawsDecodesOnly,
        "No token was drawn, though the last known token was computed. The length of a chunk says "
        "nothing, nor whether there are outputs: what counts is whether its end is the last known "
        "token.",
    ),
    (
        _PromptsFirst,
        "Those that wait were served before those that run. The other way round: whoever decodes "
        "would stand still behind every new prompt.",
    ),
    (
        _WholePrompts,
        "A prompt that does not fit into what is left of the budget is cut there: "
        "min(not computed, budget left). Waiting for a step with room for all of it may last for "
        "ever.",
    ),
    *((flaw, TOO_MANY_TOKENS) for flaw in (_BudgetForEach, _DecodesAreFree, _OwnBudgets)),
    *((flaw, TOO_MANY_RUN) for flaw in (_NoSeats, _OneSeatMore)),
    (
        _WalksOverChanges,
        "Somebody was passed over. Preempting takes a request out of `running`, and those behind "
        "it move up: walk over a copy.",
    ),
    (
        _PromptOnly,
        "A request that comes back has all its known tokens to compute: prompt and outputs. Ask "
        "for num_tokens, not num_prompt_tokens.",
    ),
    (
        _DecodeIsOne,
        "A request with outputs was given one token. Preempted, it has none computed any more: "
        "the number is num_tokens - num_computed_tokens, whatever it did before.",
    ),
    (
        _OwnVictim,
        "The last in line was preempted, though the rule for victims names another: ask "
        "choose_victim(running, request).",
    ),
    (
        _PreemptsItself,
        "The request that found no block went itself. Whose blocks are taken choose_victim says.",
    ),
    (
        _KeepsTheBudget,
        "The victim's tokens stood in the plan and were taken out. preempt returns how many: the "
        "budget has them back.",
    ),
    (
        _Overtakes,
        "A request was admitted past one that came before it and does not fit. The first that "
        "cannot enter ends admission: else large ones would wait for ever.",
    ),
    (
        _FirstChunkFits,
        "A request was admitted because its first chunk fits. All its known tokens have to: ask "
        "may_enter. Else it will be preempted in the middle of its prompt.",
    ),
    (
        _OneAStep,
        "Only one request was admitted. While budget, seats and memory last, the next one enters "
        "in the same step.",
    ),
    (
        _NewestFirst,
        "Those that run were served from the last to the first. The order is that of admission.",
    ),
)
# flaws that few situations bring to light
BUDGET_KEPT, DRAWN_EARLY = _KeepsTheBudget, _DrawsBehindThePrompt
