"""07.3: the misconceptions that a choice is compared with, one function with switches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from minipaged.course.checks.lesson_07_steps import best, seconds, steps_of


def _mean(gaps: Sequence[float]) -> float:
    return sum(gaps) / len(gaps)


Steps = Callable[[int, int, Sequence[int]], list[tuple[int, int]]]


def _choice(
    budgets: Sequence[int],
    prompt_len: int,
    contexts: Sequence[int],
    limit: float,
    *,
    steps: Steps = steps_of,
    judge: Callable[[Sequence[float]], float] = max,
    pick: Callable[[list[int]], Any] = lambda fitting: max(fitting, default=0),
) -> Any:
    """The rule with one thing changed: which steps there are, what is compared with the limit, or
    which of the fitting budgets is taken."""
    fitting = []
    for budget in budgets:
        gaps = [seconds(*step) for step in steps(budget, prompt_len, contexts)]
        if gaps and judge(gaps) <= limit:
            fitting.append(budget)
    return pick(fitting)


def _prompt_alone(budget: int, prompt_len: int, contexts: Sequence[int]) -> list[tuple[int, int]]:
    """What the decodes have behind them is not read."""
    steps = steps_of(budget, prompt_len, contexts)
    return [(tokens, read - sum(contexts)) for tokens, read in steps]


def _never_growing(budget: int, prompt_len: int, contexts: Sequence[int]) -> list[tuple[int, int]]:
    """A decode's context stays as long as it was at first."""
    steps = steps_of(budget, prompt_len, contexts)
    return [(n, read - len(contexts) * k) for k, (n, read) in enumerate(steps, 1)]


def _whole_budget(budget: int, prompt_len: int, contexts: Sequence[int]) -> list[tuple[int, int]]:
    """The decodes come on top of the budget."""
    return steps_of(budget + len(contexts), prompt_len, contexts)


def _never_read(budget: int, prompt_len: int, contexts: Sequence[int]) -> list[tuple[int, int]]:
    """A budget that decodes use up is taken as well."""
    return steps_of(budget, prompt_len, contexts) or [(budget, sum(contexts) + budget)]


IDEAS: tuple[tuple[Callable[..., Any], str], ...] = (
    (
        partial(_choice, judge=_mean),
        "The mean over the steps was compared with the limit. Whoever waits through the longest "
        "step is not helped by the others: take the longest.",
    ),
    (
        partial(_choice, judge=lambda gaps: math.nextafter(max(gaps), math.inf)),
        "A longest step that takes exactly as long as the limit is within it: at most, not less.",
    ),
    (
        partial(_choice, steps=_never_growing),
        "The contexts grow: each decode has one token more in every step, and reads it as well.",
    ),
    (
        partial(_choice, judge=lambda gaps: gaps[0]),
        "Only the first step was looked at, or what a step reads did not grow. Each step reads all "
        "that the prompt's chunks before it have stored, so a later one can be longer.",
    ),
    (
        partial(_choice, judge=lambda gaps: gaps[-1]),
        "Only the last step was looked at. Its chunk is what is left over, often the shortest.",
    ),
    (
        partial(_choice, judge=sum),
        "The steps were added up. That is how long the prompt takes; a decode gets a token at the "
        "end of each step and waits for one step at a time.",
    ),
    (
        partial(_choice, pick=lambda fitting: min(fitting, default=0)),
        "This is the smallest budget within the limit. The largest one has the prompt computed in "
        "the fewest steps.",
    ),
    (
        partial(_choice, pick=lambda fitting: fitting[-1] if fitting else 0),
        "The last one in the list that fits was taken. The budgets stand in any order.",
    ),
    (
        partial(_choice, pick=lambda fitting: fitting[0] if fitting else 0),
        "The first one in the list that fits was taken. Look at all of them.",
    ),
    (
        lambda budgets, prompt_len, contexts, limit: (
            best(budgets, prompt_len, contexts, limit) or min(budgets)
        ),
        "Where no budget will do, one was chosen all the same. The answer is 0 then.",
    ),
    (
        partial(_choice, steps=_whole_budget),
        "The budget is for all together: the decodes take one token each, and the prompt has what "
        "is left.",
    ),
    (
        partial(_choice, steps=_prompt_alone),
        "The decodes read as well: each of them all the tokens of its own context.",
    ),
    (
        partial(_choice, steps=_never_read),
        "A budget that the decodes use up whole never gets the prompt computed. It is no choice, "
        "however short the steps.",
    ),
)
