"""04.3: what is told about a wrong result, and the blocks drawn as a query goes through them.

Each wrong idea is the plain attention with one part done in another way: the one that gives the
learner's numbers is named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from minipaged.course import expect
from minipaged.course.checks.base import Close, Failure
from minipaged.course.checks.lesson_04_plain import (
    Blocks,
    Call,
    Ways,
    attention,
    contexts,
    head_blocks,
    mean,
    slots,
)
from minipaged.course.plain import Array
from minipaged.course.script import Case


def call_of(case: Case) -> Call:
    """The arguments of a case's call."""
    meta, asked = case.operations
    return Call(*asked.args[:3], *meta.args)


def running(blocks: Blocks, old: Callable[[float, float], tuple[float, float]]) -> list[float]:
    """Online softmax; old(top, new top) gives the factors for the old sum and the old mixture."""
    top, total, mixed = -math.inf, 0.0, [0.0] * len(blocks[0][0][1])
    for block in blocks:
        new = max(top, *(score for score, _ in block))
        for_total, for_mixed = old(top, new)
        weights = [math.exp(score - new) for score, _ in block]
        total = total * for_total + sum(weights)
        for d in range(len(mixed)):
            added = sum(w * value[d] for w, (_, value) in zip(weights, block, strict=True))
            mixed[d] = mixed[d] * for_mixed + added
        top = new
    return [number / total for number in mixed]


def _not_divided(blocks: Blocks) -> list[float]:
    top = max(score for block in blocks for score, _ in block)
    weights = [[math.exp(score - top) for score, _ in block] for block in blocks]
    total = sum(map(sum, weights))
    return [number * total for number in mean(blocks)]


def _mean_of_means(blocks: Blocks) -> list[float]:
    means = [mean([block]) for block in blocks]
    return [sum(numbers) / len(means) for numbers in zip(*means, strict=True)]


def _whole(table: Sequence[int], size: int, context: int) -> list[list[int]]:
    return slots(table, size, -(-context // size) * size)


def _taken_for_slots(table: Sequence[int], size: int, context: int) -> list[list[int]]:
    return [
        [slot - entry * size + entry for slot in block]
        for entry, block in zip(table, slots(table, size, context), strict=False)
    ]


# one way a wrong idea, most telling first
MISTAKES: tuple[tuple[Ways, str], ...] = (
    (
        Ways(),
        "The numbers are right to some seven digits only. Compute in the dtype of q: float64 stays "
        "float64.",
    ),
    (
        Ways(slots=lambda table, size, n: slots(range(len(table)), size, n)),
        "The table was not asked: these are the first blocks of the pool, whoever they belong to.",
    ),
    (
        Ways(slots=_taken_for_slots),
        "An entry of the table was taken for a slot. It is the number of a block.",
    ),
    (
        Ways(slots=lambda table, size, n: slots(table, size, max(size, n // size * size))),
        "The tokens in the last block, which is filled in part, are missing.",
    ),
    (
        Ways(kv_head=lambda h, heads, kv: h % kv),
        "The query heads take the KV heads in turn. Neighbours share one: query head h reads KV "
        "head h // group.",
    ),
    (
        Ways(kv_head=lambda h, heads, kv: 0),
        "All query heads read KV head 0. Query head h reads KV head h // group.",
    ),
    (
        Ways(scale=lambda dim: 1.0),
        "The scores are not scaled: divide each by the square root of head_dim.",
    ),
    (
        Ways(scale=lambda dim: 1 / dim),
        "The scores were divided by head_dim. It is its square root.",
    ),
    (
        Ways(mean=_not_divided),
        "The values are weighted, but never divided by the sum of the exponentials.",
    ),
    (
        Ways(mean=lambda blocks: running(blocks, lambda top, new: (1.0, 1.0))),
        "The maximum has changed on the way, and what was added up before still counts with the "
        "old one. Multiply the old sum and the old mixture by e to the (old maximum - new one).",
    ),
    (
        Ways(mean=lambda blocks: running(blocks, lambda top, new: (math.exp(top - new), 1.0))),
        "When the maximum changes, the sum is scaled but the mixture of the values is not.",
    ),
    (
        Ways(mean=lambda blocks: running(blocks, lambda top, new: (1.0, math.exp(top - new)))),
        "When the maximum changes, the mixture of the values is scaled but the sum is not.",
    ),
    (
        Ways(mean=lambda blocks: mean(blocks[-1:])),
        "Only the last block counts in the result. What the blocks before it gave is lost.",
    ),
    (
        Ways(mean=_mean_of_means),
        "Each block got a softmax of its own, and the results count the same. A block with higher "
        "scores must count for more: one softmax goes over all keys.",
    ),
    (
        Ways(context=lambda keys, queries, i: keys),
        "A query has read keys behind its own position. It may read those up to its own only.",
    ),
    (
        Ways(slots=_whole),
        "Slots behind the last token were read as well. In the last block only the first ones are "
        "the request's.",
    ),
)
TAIL = (
    "NaN came out, and slots that nobody wrote to hold NaN. A weight of 0 is not enough: 0 times "
    "NaN is NaN. Take only the slots that hold a token, of the values as well as of the keys."
)
NO_KEYS = "Without keys there is no maximum and nothing to divide by: return zeros."
OVERFLOW = (
    "NaN or inf came out: e to the 89 is more than a float32 holds. Subtract the maximum so far "
    "before the exponential."
)
LEFT_OVER = (
    "An index is too large. Entries of the table behind the last token's block mean nothing: do "
    "not look them up. Count the blocks from context_len."
)
TURNS = (
    "An index is too large, or a turn of the loop finds no slot. A full last block has block_size "
    "slots, and no block comes after it: context_len % block_size is 0 then."
)
GROUPS = (
    "Do the shapes fit? There are fewer KV heads than query heads, and query head h needs the keys "
    "and values of KV head h // group."
)
INSIDE = (
    "Do the shapes fit? The query is [heads, head_dim], keys or values of a block are [slots, KV "
    "heads, head_dim], a score belongs to one query head and one slot."
)
SHAPE = "attend_one returns one row for each query head, [heads, head_dim], with the dtype of q."
RETURN = (
    f"{SHAPE} If the line is one of paged_attention, something else came: is a `return` missing?"
)
RULE = (
    "Every query head reads the keys of its KV head at the positions 0 … context_len - 1, found "
    "through the table, and returns the mean of their values with softmax's weights."
)


def explain(failure: Failure) -> str:
    """The wrong idea that gives these numbers, or the rule that was broken."""
    call, got = call_of(failure.case), failure.got
    if failure.number == 0:
        return ""
    is_empty = any(context <= 0 for _, context in contexts(call))
    if failure.fault:
        return NO_KEYS if is_empty else _of_fault(call, failure.fault)
    if type(got) is not Array or (got.dtype, got.shape) != (call.q.dtype, call.q.shape):
        return SHAPE
    if not all(map(math.isfinite, got.numbers())):
        return NO_KEYS if is_empty else _not_finite(call)
    clean = call._replace(k_pool=_without_nan(call.k_pool), v_pool=_without_nan(call.v_pool))
    return next((said for ways, said in MISTAKES if _gives(clean, ways, got)), RULE)


def _of_fault(call: Call, fault: str) -> str:
    """What to look at after an exception; "" if its own words say it."""
    if fault == "IndexError":
        in_pool = range(call.k_pool.shape[0])
        return TURNS if all(entry in in_pool for entry in call.tables.numbers()) else LEFT_OVER
    if fault == "RuntimeError":
        return GROUPS if call.q.shape[1] != call.k_pool.shape[2] else INSIDE
    return RETURN if fault == "TypeError" else ""


def _without_nan(pool: Array) -> Array:
    """The pool with 0 in the slots that nobody wrote to."""
    return Array.of(pool.dtype, pool.shape, [x if x == x else 0.0 for x in pool.numbers()])


def _not_finite(call: Call) -> str:
    has_nan = any(number != number for number in call.v_pool.numbers())
    return TAIL if has_nan else OVERFLOW


def _gives(call: Call, ways: Ways, got: Array) -> bool:
    try:
        return expect.matches(Close(attention(call, ways), 1e-4, 1e-5), got)
    except (ValueError, IndexError, OverflowError, ZeroDivisionError):
        return False


def picture(case: Case, number: int) -> str:
    """How the last query's head 0 goes through its blocks: scores, maximum and sum so far."""
    if number == 0:
        return ""
    call = call_of(case)
    blocks = head_blocks(call, call.q.shape[0] - 1, 0)
    if not blocks:
        return "the last query has no keys"
    table: list[Any] = list(call.tables.numbers())[-call.tables.shape[1] :]
    lines = ["the last query, head 0:"]
    top, total = -math.inf, 0.0
    for entry, block in zip(table, blocks, strict=False):
        new = max(top, *(score for score, _ in block))
        total = total * math.exp(top - new) + sum(math.exp(score - new) for score, _ in block)
        top = new
        scores = " ".join(f"{score:.4g}" for score, _ in block)
        lines.append(f"  block {entry}: scores {scores}; maximum {top:.4g}, sum {total:.4g}")
    return "\n".join(lines)
