"""08.2 swap_or_recompute(request, num_blocks, costs): what takes less time for this victim.

The oracle adds whole fractions, the wrong ideas are formulas that leave something out. As there
are two answers only, a hidden case is made for each idea: one in which it says the other thing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from minipaged.course import plain
from minipaged.course.checks.base import Check, Row
from minipaged.course.script import Case, Operation

Costs = dict[str, Any]
Terms = Callable[["Victim"], tuple[Any, Any]]


class Victim(NamedTuple):
    """One question: tokens computed and known, blocks, the costs, and the answer."""

    computed: int
    known: int
    blocks: int
    costs: Costs
    got: Any = None


def _costs(parameters: int, layers: int, hidden: int, kv_bytes: int, copy_us: int = 0) -> Costs:
    """On the lesson's machine; copy_us: microseconds a block and direction beyond its bytes."""
    return {
        "num_parameters": parameters,
        "num_layers": layers,
        "hidden_size": hidden,
        "kv_bytes_per_token": kv_bytes,
        "peak_flops": 500 * 10**12,
        "host_bandwidth": 32 * 10**9,
        "seconds_per_block": copy_us / 10**6,
    }


MODELS = {
    "Llama-2-7B": _costs(6_738_000_000, 32, 4096, 524_288),
    "Llama-2-13B": _costs(13_016_000_000, 40, 5120, 819_200),
    "Llama-3-8B": _costs(8_030_000_000, 32, 4096, 131_072),
    "Llama-3-70B": _costs(70_554_000_000, 80, 8192, 327_680),
    "Qwen2.5-0.5B": _costs(494_032_768, 24, 896, 12_288),
    "SmolLM2-135M": _costs(134_515_008, 30, 576, 23_040),
}


def moving(one: Victim, ways: int = 2, blocks: bool = True, bytes_: bool = True) -> Fraction:
    """Seconds to the host and back."""
    costs = one.costs
    seconds = Fraction(one.computed * costs["kv_bytes_per_token"], costs["host_bandwidth"])
    for_blocks = Fraction(costs["seconds_per_block"]) * one.blocks
    return ways * (bytes_ * seconds + blocks * for_blocks)


def computing(
    one: Victim, per_parameter: int = 2, attention: Fraction = Fraction(2), known: bool = False
) -> Fraction:
    """Seconds to compute again. attention: FLOP per layer, hidden size and pair of tokens."""
    costs, tokens = one.costs, one.known if known else one.computed
    pairs = attention * costs["num_layers"] * costs["hidden_size"] * tokens * tokens
    return Fraction(per_parameter * costs["num_parameters"] * tokens + pairs, costs["peak_flops"])


def say(swap: Any, again: Any) -> str:
    """The answer for two times; recompute if both are equal."""
    return "swap" if swap < again else "recompute"


def answer(one: Victim) -> str:
    """The right one."""
    return say(moving(one), computing(one))


EXCHANGED = "The two are exchanged: the answer names what takes longer."
IDEAS: tuple[tuple[Callable[[Victim], Any], str], ...] = (
    (lambda one: say(computing(one), moving(one)), EXCHANGED),
    (lambda one: "swap" if answer(one) == "recompute" else "recompute", EXCHANGED),
    (
        lambda one: "recompute" if one.costs["num_parameters"] < 2e10 else "swap",
        "The size of the model alone decides nothing. Compare seconds: the bytes of a token count "
        "as much as the parameters.",
    ),
    (
        lambda one: "recompute",
        "This always computes again. Compare seconds: for many models moving takes less.",
    ),
    (
        lambda one: "swap",
        "This always moves, or does not look at the costs that it is given. Compare seconds: "
        "sometimes computing takes less.",
    ),
    (
        lambda one: say(moving(one, ways=1), computing(one)),
        "Moving was counted one way. What goes to the host has to come back.",
    ),
    (
        lambda one: say(moving(one), computing(one, attention=Fraction(0))),
        "Attention is missing, or too small by far. Each token reads all before it, so its part "
        "grows with the square of the number of tokens.",
    ),
    (
        lambda one: say(moving(one), computing(one, attention=Fraction(4))),
        "Attention was counted twice over. A token sees only those before it, on average half.",
    ),
    (
        lambda one: say(moving(one), computing(one, per_parameter=1)),
        "A parameter costs 2 FLOP a token: a multiplication and an addition.",
    ),
    (
        lambda one: say(moving(one), computing(one, known=True)),
        "Known tokens were counted. Only what the victim has computed is moved or computed again.",
    ),
    (
        lambda one: say(moving(one._replace(computed=16 * one.blocks)), computing(one)),
        "Whole blocks of 16 were moved. The bytes that count are those of the computed tokens: the "
        "last block may be nearly empty.",
    ),
    (
        lambda one: say(moving(one, blocks=False), computing(one)),
        "seconds_per_block is missing: every block takes that much more, there and back.",
    ),
    (
        lambda one: say(
            moving(one, 2, blocks=False) + moving(one, 1, bytes_=False), computing(one)
        ),
        "seconds_per_block counts in each direction.",
    ),
    (
        lambda one: "swap" if moving(one) <= computing(one) else "recompute",
        'If both take equally long the answer is "recompute": it needs no memory on the host.',
    ),
)


def victims(rows: Sequence[Row]) -> Iterator[Victim]:
    """The questions of scripts, and what was answered."""
    computed = known = 0
    for row in rows:
        first = row.args[0] if row.args else None
        if type(first) is list:
            _, computed, known, _ = first[0]
        elif first == plain.Kept("victim"):
            yield Victim(computed, known, row.args[1], row.args[2], row.got)


def diagnose(rows: Sequence[Row]) -> str:
    """The wrong idea that gives every answer."""
    asked = list(victims(rows))
    for idea, sentence in IDEAS:
        if asked and all(idea(one) == one.got for one in asked):
            return sentence
    if any(one.got not in ("swap", "recompute") for one in asked):
        return 'Return one of two words: "swap" or "recompute".'
    return ""


def visible() -> list[Case]:
    """Models with 1,000 tokens each, both sides of a crossover, copies that cost, a tie."""
    cases = [
        _case(name, "1,000 tokens are computed, in 63 blocks.", Victim(1000, 1001, 63, costs))
        for name, costs in MODELS.items()
    ]
    seven, eight = MODELS["Llama-2-7B"], MODELS["Llama-3-8B"]
    long = "A long context: attention's part has grown."
    even = _costs(8 * 10**9, 32, 4096, 0) | {"kv_bytes_per_token": 0, "seconds_per_block": 0.0}
    tie = even | {"num_layers": 0, "num_parameters": 125 * 10**9, "kv_bytes_per_token": 8 * 10**6}
    begun = "A prompt of 40,000 tokens of which 4,000 are computed."
    return [
        *cases,
        _case("7B, 11,000 tokens", long, Victim(11_000, 11_001, 688, seven)),
        _case("7B, 11,200 tokens", long, Victim(11_200, 11_201, 700, seven)),
        _case("13B, one token", "Nothing but the first token.", _tiny(MODELS["Llama-2-13B"])),
        _case("a prompt only begun", begun, Victim(4000, 40_000, 250, seven)),
        *(_slow_copies(eight, microseconds) for microseconds in (160, 320, 640)),
        _case("a tie", "Both take exactly as long.", Victim(1000, 1001, 63, tie)),
    ]


def _tiny(costs: Costs) -> Victim:
    return Victim(1, 2, 1, costs)


def _slow_copies(costs: Costs, microseconds: int) -> Case:
    slow = costs | {"seconds_per_block": microseconds / 10**6}
    story = f"Each block takes {microseconds} µs longer than its bytes need."
    return _case(f"8B, {microseconds} µs a block", story, Victim(1000, 1001, 63, slow))


def hidden(seed: int) -> list[Case]:
    """For each wrong idea two victims for which it says the other thing, and 6 more."""
    rng = random.Random(f"08.2/{seed}")
    ones = [_against(rng, idea) for idea, _ in IDEAS[:-1] for _ in range(2)]
    ones += [_tie(rng), _tie(rng), *(_random_victim(rng) for _ in range(6))]
    return [_case("hidden", "Another model, another machine.", one) for one in ones]


def _against(rng: random.Random, idea: Callable[[Victim], Any]) -> Victim:
    while True:
        one = _random_victim(rng)
        swap, again = moving(one), computing(one)
        # far enough apart that no rounding of floats decides
        if idea(one) != answer(one) and abs(swap - again) > again / 10**6:
            return one


def _random_victim(rng: random.Random) -> Victim:
    """A model of random shape, with a bus about as fast as computing its tokens again."""
    computed = rng.choice((rng.randrange(50, 20_000), rng.randrange(17, 200)))
    layers, hidden_size = rng.randrange(8, 100), 64 * rng.randrange(4, 130)
    costs = _costs(rng.randrange(10**8, 10**11), layers, hidden_size, 1)
    costs["peak_flops"] = rng.randrange(50, 1000) * 10**12
    costs["host_bandwidth"] = rng.randrange(8, 64) * 10**9
    blocks = -(-computed // 16)
    known = computed + rng.choice((1, 1, rng.randrange(2, 2 * computed)))
    one = Victim(computed, known, blocks, costs)
    for_blocks = rng.choice((0, 0, rng.randrange(1, 60)))  # per cent of the time
    again = computing(one)
    costs["seconds_per_block"] = float(again * for_blocks / 100 / (2 * blocks))
    left = again * (100 - for_blocks) / 100 * rng.choice((30, 70, 90, 97, 103, 110, 150, 190)) / 100
    costs["kv_bytes_per_token"] = max(1, int(left * costs["host_bandwidth"] / (2 * computed)))
    return one


def _tie(rng: random.Random) -> Victim:
    """Without attention or copies: 2 S x bytes / bandwidth = 2 S x parameters / FLOP per second.

    Powers of two throughout, so that floats come out equal as well.
    """
    power = rng.randrange(4)
    costs = _costs(2**30 << power, 0, 1024, 2**14 << power)
    costs |= {"peak_flops": 2**49, "host_bandwidth": 2**33}
    tokens = 16 * rng.randrange(1, 100)
    return Victim(tokens, tokens + 1, tokens // 16, costs)


def _case(name: str, story: str, one: Victim) -> Case:
    row = ["A", one.computed, one.known, one.blocks]
    operations = (
        Operation(([row],), "requests", keep="running"),
        Operation((0,), "running", how="item", keep="victim"),
        Operation((plain.Kept("victim"), one.blocks, one.costs)),
    )
    return Case(name, story, operations)


def _oracle(case: Case) -> list[Any]:
    _, computed, known, _ = case.operations[0].args[0][0]
    _, blocks, costs = case.operations[2].args
    return [answer(Victim(computed, known, blocks, costs))]


def picture(case: Case, number: int) -> str:
    """The victim and what it is weighed with."""
    if number < 2:
        return ""
    _, computed, known, _ = case.operations[0].args[0][0]
    _, blocks, costs = case.operations[2].args
    held = "block" if blocks == 1 else "blocks"
    lines = [f"computed {computed:,} of {known:,} known tokens, {blocks:,} {held}"]
    return "\n".join(lines + [f"{name:20}{value:>22,}" for name, value in costs.items()])


CHECK = Check(visible, hidden, _oracle, diagnose=diagnose, picture=picture)
