"""07.1 chunks(prompt_len, budget, decodes_left): what a prompt gets in each step behind decodes.

The oracle hands the budget out token by token along a queue of claims. The misconceptions are one
function with switches.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from minipaged.course.checks.base import Check, Row
from minipaged.course.script import Case, Operation

MAX_STEPS = 2000  # of a wrong idea that makes no headway
PROMPT = -1


def visible() -> list[Case]:
    """Cut by the budget alone, behind decodes, behind decodes that end, behind too many."""
    return [
        _case("4,000 tokens by 512", "Nobody else runs.", 4000, 512),
        _case("one token left over", "A prompt of 9, budget 8. Nobody else runs.", 9, 8),
        _case("one decode", "Budget 4, and a decode that runs for long.", 12, 4, 40),
        _case("two decodes", "Budget 8: the rest of it is the prompt's.", 10, 8, 30, 30),
        _case("room for all", "The whole prompt fits behind three decodes.", 20, 64, 9, 9, 9),
        _case("decodes that end", "One decode has 1 token to write, one has 3.", 20, 6, 1, 3),
        _case("the last token", "A decode ends in the very step that ends the prompt.", 9, 4, 3),
        _case("too many decodes", "Budget 2, and three decodes of 3 tokens each.", 4, 2, 3, 3, 3),
        _case("the budget just used up", "Budget 3, three decodes: 2, 4 and 4.", 7, 3, 2, 4, 4),
        _case("behind eight", "The prompt of the lesson, budget 512.", 4000, 512, *[100] * 8),
    ]


def hidden(seed: int) -> list[Case]:
    """20 further cases: long decodes, decodes that end, more decodes than budget."""
    rng = random.Random(f"07.1/{seed}")
    return [_hidden_case(rng, number % 4) for number in range(20)]


def _hidden_case(rng: random.Random, kind: int) -> Case:
    budget, prompt_len = rng.randrange(5, 40), rng.randrange(50, 400)
    decodes = [rng.randrange(1, 12) for _ in range(rng.randrange(2, 5))]
    if kind == 0:
        decodes = [500] * rng.randrange(0, 5)
    elif kind == 1:  # in a step or two the prompt gets nothing
        budget = rng.randrange(2, 5)
        decodes = [rng.randrange(2, 6) for _ in range(budget + rng.randrange(1, 4))]
    elif kind == 2:  # a last chunk of one token
        budget = rng.randrange(5, 12)
        prompt_len, decodes = (budget - 1) * rng.randrange(3, 9) + 1, [500]
    return _case("hidden", "Other lengths.", prompt_len, budget, *decodes)


def _case(name: str, story: str, prompt_len: int, budget: int, *decodes_left: int) -> Case:
    return Case(name, story, (Operation((prompt_len, budget, list(decodes_left))),))


def handed_out(prompt_len: int, budget: int, decodes_left: Sequence[int]) -> list[int]:
    """Who wants a token stands in a queue, decodes first; the first `budget` of it are served."""
    left = dict(enumerate(decodes_left))
    got: list[int] = []
    while sum(got) < prompt_len:
        claims = [number for number in left if left[number]]
        claims += [PROMPT] * min(budget, prompt_len - sum(got))
        served = claims[:budget]
        got.append(served.count(PROMPT))
        for number in served:
            if number != PROMPT:
                left[number] -= 1
    return got


def _oracle(case: Case) -> list[Any]:
    return [handed_out(*operation.args) for operation in case.operations]


def _wrong(
    prompt_len: int,
    budget: int,
    decodes_left: Sequence[int],
    *,
    ends: str = "after",
    unserved: str = "wait",
    least: int = 0,
    cut_last: bool = True,
) -> list[int]:
    """The rule with one thing changed. ends: when a decode is gone, "after" its last token, "late"
    or "never". unserved: decodes beyond the budget "wait", "count" down all the same, or have
    their "turn". least: tokens that the prompt gets in any case. cut_last: to what is left."""
    got: list[int] = []
    alive = list(decodes_left)
    while prompt_len > 0 and len(got) < MAX_STEPS:
        served = min(len(alive), budget)
        chunk = max(least, budget - served)
        chunk = min(chunk, prompt_len) if cut_last else chunk
        got.append(chunk)
        prompt_len -= chunk
        if ends == "never":
            continue
        counted = len(alive) if unserved == "count" else served
        alive = [n - 1 for n in alive[:counted]] + alive[counted:]
        if unserved == "turn":
            alive = alive[served:] + alive[:served]
        alive = [n for n in alive if n > (-1 if ends == "late" else 0)]
    return got


def _evenly(prompt_len: int, budget: int, decodes_left: Sequence[int]) -> list[int]:
    """As many chunks as it takes, all about equal."""
    count = -(-prompt_len // max(1, budget - len(decodes_left)))
    return [(prompt_len + number) // count for number in reversed(range(count))]


def _by_length(prompt_len: int, budget: int, decodes_left: Sequence[int]) -> list[int]:
    """A decode takes all that it has still to write, at once."""
    got = [min(prompt_len, max(0, budget - sum(decodes_left)))]
    while sum(got) < prompt_len:
        got.append(min(prompt_len - sum(got), budget))
    return got


EQUAL = "The chunks are made equal. Each step takes what its budget allows, the last the rest."
# the misconceptions that an answer is compared with, most telling first
IDEAS = (
    (
        lambda p, b, d: _wrong(p, b, []),
        "The prompt takes the whole budget, and nothing is left for the decodes. They come first: "
        "one token each.",
    ),
    (
        lambda p, b, d: _wrong(p, b, d, ends="never"),
        "The decodes go on for ever here. One that has written its last token takes nothing from "
        "the next step on, and the prompt gets more.",
    ),
    (
        lambda p, b, d: _wrong(p, b, d, ends="late"),
        "A decode takes one token too many. With 1 token to write it is part of one step.",
    ),
    (
        lambda p, b, d: [c for c in handed_out(p, b, d) if c],
        "Steps are missing: those in which decodes use the whole budget. The prompt waits in them, "
        "so write down 0.",
    ),
    (
        lambda p, b, d: _wrong(p, b, d, least=1),
        "The prompt gets a token in every step, though decodes have used the budget up. A step "
        "computes at most `budget` tokens.",
    ),
    (
        lambda p, b, d: _wrong(p, b, d, unserved="count"),
        "A decode that found no room in the budget got no token, so it has as many to write as "
        "before.",
    ),
    (
        lambda p, b, d: _wrong(p, b, d, unserved="turn"),
        "Where the budget is too small for all decodes, they take turns here. Served is in order: "
        "the first ones until they are done, then those behind them.",
    ),
    (
        lambda p, b, d: _wrong(p, b, d, cut_last=False),
        "The last chunk is what is left of the prompt, and not more.",
    ),
    (lambda p, b, d: _evenly(p, b, d)[::-1], EQUAL),
    (_evenly, EQUAL),
    (
        _by_length,
        "A decode takes one token a step, however many it has still to write: it does not know the "
        "next one before the last is computed.",
    ),
)


def diagnose(rows: Sequence[Row]) -> str:
    """The wrong idea that gives every answer, or what is wrong with one of the lists."""
    for idea, sentence in IDEAS:
        if all(idea(*row.args) == row.got for row in rows):
            return sentence
    for row in rows:
        if _adds_up_wrongly(row):
            return "The chunks together are not the prompt: each of its tokens is computed once."
    return ""


def _adds_up_wrongly(row: Row) -> bool:
    whole = type(row.got) is list and all(type(chunk) is int for chunk in row.got)
    return whole and sum(row.got) != row.args[0]


CHECK = Check(visible, hidden, _oracle, diagnose=diagnose)
