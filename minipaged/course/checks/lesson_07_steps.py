"""What the steps of exercise 07.3 take, and which budget is the largest within a limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipaged.exec.sim_exec import CostModel
from minipaged.plan import ScheduledItem, StepPlan

COST = CostModel()


def seconds(num_tokens: int, num_read: int) -> float:
    """What the cost model says of a step that computes so many tokens and reads so many."""
    item = ScheduledItem("", [0] * num_tokens, num_read - num_tokens, 0, [], None, 0)
    return COST.seconds(StepPlan(0, items=[item]), 16)


def steps_of(budget: int, prompt_len: int, contexts: Sequence[int]) -> list[tuple[int, int]]:
    """(tokens computed, tokens read) of each step until the prompt is computed; [] if never."""
    count = len(contexts)
    room = budget - count
    if room < 1:
        return []
    ends = [*range(room, prompt_len, room), prompt_len]
    starts = [0, *ends[:-1]]
    return [
        (count + end - start, sum(contexts) + count * number + end)
        for number, (start, end) in enumerate(zip(starts, ends, strict=True), 1)
    ]


def gaps_of(budget: int, prompt_len: int, contexts: Sequence[int]) -> list[float]:
    """How long each of these steps takes."""
    return [seconds(*step) for step in steps_of(budget, prompt_len, contexts)]


def best(budgets: Sequence[int], prompt_len: int, contexts: Sequence[int], limit: float) -> Any:
    """The largest budget that gets the prompt computed, no step longer than limit; or 0."""
    fitting = []
    for budget in budgets:
        gaps = gaps_of(budget, prompt_len, contexts)
        if gaps and max(gaps) <= limit:
            fitting.append(budget)
    return max(fitting, default=0)
