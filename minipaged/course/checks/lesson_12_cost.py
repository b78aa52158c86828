"""12.2 step_cost(model, work, card): the cases. What is right is counted in lesson_12_count.py."""

from __future__ import annotations

import random
from typing import Any

from minipaged.course.checks.base import Check, Close
from minipaged.course.checks.lesson_12_cost_told import explain
from minipaged.course.checks.lesson_12_count import Model, Work, cost
from minipaged.course.script import Case, Operation

KEYS = ("flops", "bytes", "seconds", "bound")


def _model(
    layers: int, hidden: int, heads: int, kv_heads: int, head_dim: int, mlp: int, vocab: int
) -> Model:
    return {
        "layers": layers,
        "hidden": hidden,
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "mlp": mlp,
        "vocab": vocab,
        "bytes_per_number": 2,
    }


LLAMA_3_8B = _model(32, 4096, 32, 8, 128, 14_336, 128_256)
LLAMA_2_7B = _model(32, 4096, 32, 32, 128, 11_008, 32_000)
TINY = _model(1, 5, 4, 1, 2, 7, 11)
H100 = {"flops": 989e12, "bandwidth": 3350e9}
SLOW = {"flops": 1000.0, "bandwidth": 1000.0}


def visible() -> list[Case]:
    """A model small enough for paper, then two that exist."""
    tiny = "A model of one layer, small enough to count on paper"
    return [
        _case("one decode", f"{tiny}: one token, 3 keys.", TINY, [(1, 3)], SLOW),
        _case("two decodes", f"{tiny}: the weights are shared.", TINY, [(1, 3), (1, 5)], SLOW),
        _case("a prompt", f"{tiny}: 3 tokens at once, none before them.", TINY, [(3, 3)], SLOW),
        _case("a chunk", f"{tiny}: the last 2 of 5 tokens.", TINY, [(2, 5)], SLOW),
        _case(
            "three layers, odd heads",
            "6 query heads of 4, but hidden is 11: the queries' matrix is not square.",
            _model(3, 11, 6, 1, 4, 13, 20),
            [(1, 7), (4, 5)],
            SLOW,
        ),
        _case("nothing to do", "An empty step.", TINY, [], SLOW),
        _case("Llama-3-8B, one", "One decode at 2,048 tokens.", LLAMA_3_8B, [(1, 2048)], H100),
        _case("Llama-3-8B, 128", "128 decodes.", LLAMA_3_8B, [(1, 2048)] * 128, H100),
        _case("Llama-3-8B, prefill", "A prompt of 2,048.", LLAMA_3_8B, [(2048, 2048)], H100),
        _case(
            "mixed",
            "A chunk of 512 beside 64 decodes of Llama-2-7B, which shares no keys and values.",
            LLAMA_2_7B,
            [(512, 1024)] + [(1, 700)] * 64,
            H100,
        ),
        _tie(),
    ]


def _tie() -> Case:
    """A card on which both times are exactly equal: powers of two."""
    right = cost(TINY, [(1, 3)], SLOW)
    card = {"flops": float(right["flops"]), "bandwidth": float(right["bytes"])}
    return _case("a tie", "Both take exactly one second.", TINY, [(1, 3)], card)


def hidden(seed: int) -> list[Case]:
    """10 random models and steps."""
    rng = random.Random(f"12.2/{seed}")
    cases = [_hidden(rng, number) for number in range(10)]
    return [*cases, _tie(), _case("hidden", "A step without work.", LLAMA_2_7B, [], H100)]


def _hidden(rng: random.Random, number: int) -> Case:
    kv_heads, head_dim = rng.randrange(1, 9), 8 * rng.randrange(1, 17)
    heads = kv_heads * rng.randrange(2, 6)
    hidden_size = heads * head_dim + 64 * rng.randrange(1, 4)
    sizes = rng.randrange(2, 60), hidden_size, heads, kv_heads, head_dim
    model = _model(*sizes, 64 * rng.randrange(20, 200), rng.randrange(1000, 99_999))
    model["bytes_per_number"] = (2, 1, 4)[number % 3]
    work = []
    for _ in range(rng.randrange(2, 9)):
        queries = rng.choice((1, 1, 1, rng.randrange(2, 300)))
        work.append((queries, queries + rng.randrange(1, 3000)))
    if number % 2:
        work.append((700, 900))
    card = {"flops": 1e12 * rng.randrange(20, 900), "bandwidth": 1e9 * rng.randrange(200, 5000)}
    if number % 2 == 0:
        card["flops"] *= 10
    if number == 1:
        card["flops"] /= 100
    return _case("hidden", "Another model, another step.", model, work, card)


def _case(name: str, story: str, model: Model, work: Work, card: dict[str, float]) -> Case:
    items = [Operation((key,), "cost", how="item") for key in KEYS]
    return Case(name, story, (Operation((model, work, card), keep="cost"), *items))


def _oracle(case: Case) -> list[Any]:
    right = cost(*case.operations[0].args)
    return [Close(right[key]) if key != "bound" else right[key] for key in KEYS]


def picture(case: Case, number: int) -> str:
    """The model, and the sequences of the step."""
    if number < 1:
        return ""
    model, work, _ = case.operations[0].args
    sizes = "  ".join(f"{name} {value:,}" for name, value in model.items())
    pairs = [f"{queries:,} of {context:,}" for queries, context in work[:4]]
    more = [f"and {len(work) - 4} more"] if len(work) > 4 else []
    return f"{sizes}\nqueries of context: {', '.join(pairs + more) or 'none'}"


CHECK = Check(visible, hidden, _oracle, explain=explain, picture=picture)
