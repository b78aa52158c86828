"""07.3 choose_budget(budgets, prompt_len, contexts, limit): the largest budget whose longest step
stays within a limit.

The oracle asks the simulator's own cost model about a plan for each step. The misconceptions are
one function with switches.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from minipaged.course.checks.base import Check, Row
from minipaged.course.script import Case, Operation
from minipaged.exec.sim_exec import CostModel
from minipaged.plan import ScheduledItem, StepPlan

COST = CostModel()
USUAL = [128, 256, 512, 1024, 2048, 4096]
FINE = [*range(64, 641, 64)]


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


def visible() -> list[Case]:
    """Computing that decides, reading that decides, budgets that do not do."""
    short, many, long = [200] * 8, [200] * 100, [30_000] * 24
    one_step = max(gaps_of(512, 400, short))
    return [
        _case("20 milliseconds", "Eight decodes and the prompt of the lesson.", USUAL, short, 0.02),
        _case("a tighter limit", "The same, at most 12 milliseconds.", USUAL, short, 0.012),
        _case(
            "not in order", "The budgets stand in no order.", [1024, 4096, 256, 512], short, 0.02
        ),
        _case("no limit to speak of", "One second.", USUAL, short, 1.0),
        _case("nothing will do", "Reading the weights alone takes longer.", USUAL, short, 0.006),
        _case(
            "a hundred decodes",
            "Two of the budgets leave the prompt no token at all.",
            *([64, 100, 128, 192, 256, 320, 384, 448, 512], many, 0.009),
        ),
        _case("only too small ones", "100 decodes, and budgets up to 100.", [50, 100], many, 1.0),
        _case("long answers", "24 decodes that have 30,000 tokens each.", FINE, long, 0.035),
        _case(
            "the end of a long prompt",
            "A prompt of 60,000. Each step reads more of it than the one before.",
            *([64, 128, 256, 512, 1024], short, 0.0083, 60_000),
        ),
        _case(
            "just within",
            "The limit is exactly the longest step of one of the budgets.",
            *(FINE, short, max(gaps_of(448, 4000, short))),
        ),
        _case(
            "a short last step",
            "By 2,048 a prompt of 2,100 takes a long step and a short one.",
            *(USUAL, short, 0.03, 2100),
        ),
        _case("one step", "It takes exactly as long as the limit.", [512], short, one_step, 400),
        _case(
            "one token too many",
            "The same prompt, and the limit is a microsecond shorter.",
            *([512], short, one_step - 1e-6, 400),
        ),
        _case(
            "a prompt for one step",
            "The prompt is shorter than most budgets.",
            *(USUAL, short, 0.011, 400),
        ),
    ]


def hidden(seed: int) -> list[Case]:
    """18 further cases: limits between the longest steps of neighbouring budgets, limits that are
    the longest step of one, budgets and limits with which nothing will do."""
    rng = random.Random(f"07.3/{seed}")
    return [make(rng) for make in HIDDEN for _ in range(3)]


def _between(rng: random.Random, contexts: list[int], budgets: list[int]) -> Case:
    """A limit between the longest steps of two budgets; their order is any."""
    rng.shuffle(budgets)
    prompt_len = rng.randrange(3000, 6000)
    gaps = sorted(max(gaps_of(b, prompt_len, contexts), default=0.0) for b in budgets)
    place = rng.randrange(len(gaps) // 2, len(gaps) - 1)
    return _hidden_case(budgets, contexts, (gaps[place] + gaps[place + 1]) / 2, prompt_len)


def _few_decodes(rng: random.Random) -> Case:
    return _between(rng, _contexts(rng, 4, 12), list(range(384, 3000, rng.randrange(150, 250))))


def _many_decodes(rng: random.Random) -> Case:
    return _between(rng, _contexts(rng, 90, 130), list(range(32, 1200, rng.randrange(50, 80))))


def _exactly(rng: random.Random) -> Case:
    """The longest step of one of the budgets is the limit."""
    contexts, prompt_len = _contexts(rng, 4, 12), rng.randrange(3000, 6000)
    budgets = list(range(384, 3000, rng.randrange(150, 250)))
    limit = max(gaps_of(rng.choice(budgets), prompt_len, contexts))
    return _hidden_case(budgets, contexts, limit, prompt_len)


def _late(rng: random.Random) -> Case:
    """A long prompt, and steps that wait for memory: the last of them is the longest."""
    contexts, prompt_len = _contexts(rng, 4, 12), rng.randrange(50_000, 80_000)
    limit = gaps_of(256, prompt_len, contexts)[-1] - 0.0004
    return _hidden_case([64, 128, 192, 256], contexts, limit, prompt_len)


def _long_contexts(rng: random.Random) -> Case:
    """What the decodes have behind them takes longer to read than the limit allows."""
    contexts = [rng.randrange(20_000, 40_000) for _ in range(rng.randrange(20, 30))]
    limit = gaps_of(64, 4000, contexts)[0] - 0.003
    return _hidden_case([64, 128, *range(384, 1000, 100)], contexts, limit, 4000)


def _too_small(rng: random.Random) -> Case:
    """As many decodes as budget, or more."""
    contexts = _contexts(rng, 64, 90)
    return _hidden_case([16, 32, 48, len(contexts)], contexts, 1.0, rng.randrange(3000, 6000))


HIDDEN = (_few_decodes, _many_decodes, _exactly, _late, _long_contexts, _too_small)


def _contexts(rng: random.Random, fewest: int, most: int) -> list[int]:
    return [rng.randrange(100, 400) for _ in range(rng.randrange(fewest, most))]


def _hidden_case(
    budgets: Sequence[int], contexts: Sequence[int], limit: float, prompt_len: int
) -> Case:
    return _case("hidden", "Other sizes.", budgets, contexts, limit, prompt_len)


def _case(
    name: str,
    story: str,
    budgets: Sequence[int],
    contexts: Sequence[int],
    limit: float,
    prompt_len: int = 4000,
) -> Case:
    args = (list(budgets), prompt_len, list(contexts), limit)
    return Case(name, story, (Operation(args),))


def _oracle(case: Case) -> list[Any]:
    return [best(*operation.args) for operation in case.operations]


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


def diagnose(rows: Sequence[Row]) -> str:
    """The wrong idea that gives every answer."""
    for idea, sentence in IDEAS:
        if all(idea(*row.args) == row.got for row in rows):
            return sentence
    if any(row.got and row.got not in row.args[0] for row in rows):
        return "Return one of the budgets in the list, or 0."
    return ""


CHECK = Check(visible, hidden, _oracle, diagnose=diagnose)
