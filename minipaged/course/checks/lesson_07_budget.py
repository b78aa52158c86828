"""07.3 choose_budget(budgets, prompt_len, contexts, limit): the largest budget whose longest step
stays within a limit.

The oracle asks the simulator's own cost model about a plan for each step.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from minipaged.course.checks.base import Check, Row
from minipaged.course.checks.lesson_07_budget_ideas import IDEAS
from minipaged.course.checks.lesson_07_steps import COST, best, gaps_of
from minipaged.course.script import Case, Operation

USUAL = [128, 256, 512, 1024, 2048, 4096]
FINE = [*range(64, 641, 64)]


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
            "answers that grow",
            "60 decodes and a budget of 64: 1,000 steps, and each decode writes in all of them.",
            *([64, 2048], [2000] * 60, 0.013),
        ),
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
    """21 further cases: limits between the longest steps of neighbouring budgets, limits that are
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


def _growing(rng: random.Random) -> Case:
    """So many steps that what the decodes write in them takes its time to read. The limit is half
    a token a decode below the longest."""
    contexts = [rng.randrange(1500, 2500) for _ in range(rng.randrange(50, 64))]
    budget, prompt_len = len(contexts) + rng.randrange(3, 6), rng.randrange(2000, 3000)
    token = COST.kv_bytes_per_token / COST.memory_bandwidth
    limit = gaps_of(budget, prompt_len, contexts)[-1] - token * len(contexts) / 2
    return _hidden_case([budget, 4096], contexts, limit, prompt_len)


def _too_small(rng: random.Random) -> Case:
    """As many decodes as budget, or more."""
    contexts = _contexts(rng, 64, 90)
    return _hidden_case([16, 32, 48, len(contexts)], contexts, 1.0, rng.randrange(3000, 6000))


HIDDEN = (
    _few_decodes,
    _many_decodes,
    _exactly,
    _late,
    _long_contexts,
    _growing,
    _too_small,
)


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


def diagnose(rows: Sequence[Row]) -> str:
    """The wrong idea that gives every answer."""
    for idea, sentence in IDEAS:
        if all(idea(*row.args) == row.got for row in rows):
            return sentence
    if any(row.got and row.got not in row.args[0] for row in rows):
        return "Return one of the budgets in the list, or 0."
    return ""


CHECK = Check(visible, hidden, _oracle, diagnose=diagnose)
