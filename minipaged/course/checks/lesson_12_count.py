"""12.2: FLOPs and bytes of a step, counted matrix by matrix and query by query.

Whatever can be counted in another way is a field of Ways, so that a wrong idea is the right count
with one choice made differently.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Model = dict[str, int]
Work = list[tuple[int, int]]


@dataclass(frozen=True)
class Ways:
    """How each part is counted; what stands here is right.

    per_multiplication: FLOP. query, kv, mlp: matrices a layer. wide: numbers in all query heads.
    output_rows, weights_read: of a step with this work. causal, own: which keys a query meets.
    per_key: how often head_dim multiplications. kv_both: keys and values. kv_heads: that are
    stored. kv_layers: with keys and values. read, written: tokens of a sequence.
    """

    per_multiplication: int = 2
    query: int = 2
    kv: int = 2
    mlp: int = 3
    by_hidden: bool = False
    output_rows: str = "sequence"
    output_read: bool = True
    weights_read: str = "step"
    causal: bool = True
    own: bool = True
    per_key: int = 2
    attention_layers: bool = True
    attention_heads: str = "heads"
    kv_both: int = 2
    kv_heads: str = "kv_heads"
    kv_layers: bool = True
    reads: str = "context"
    writes: bool = True
    per_number: bool = True


RIGHT = Ways()


def matrices(model: Model, ways: Ways = RIGHT) -> Iterator[tuple[int, int]]:
    """Rows and columns of each matrix of one layer."""
    wide = model["hidden"] if ways.by_hidden else model["heads"] * model["head_dim"]
    for _ in range(ways.query):
        yield model["hidden"], wide
    for _ in range(ways.kv):
        yield model["hidden"], model["kv_heads"] * model["head_dim"]
    for _ in range(ways.mlp):
        yield model["hidden"], model["mlp"]


def keys_met(queries: int, context: int, ways: Ways = RIGHT) -> int:
    """By all queries of a sequence together, one query after another."""
    first = context - queries
    return sum(first + number + ways.own if ways.causal else context for number in range(queries))


def count_flops(model: Model, work: Work, ways: Ways = RIGHT) -> int:
    """FLOP of a step."""
    done = 0
    output = {"sequence": lambda q: 1, "token": lambda q: q, "none": lambda q: 0}[ways.output_rows]
    for queries, context in work:
        for _ in range(model["layers"]):
            done += sum(queries * rows * columns for rows, columns in matrices(model, ways))
        layers = model["layers"] if ways.attention_layers else 1
        met = ways.per_key * keys_met(queries, context, ways)
        done += layers * model[ways.attention_heads] * model["head_dim"] * met
        done += output(queries) * model["hidden"] * model["vocab"]
    return ways.per_multiplication * done


def count_bytes(model: Model, work: Work, ways: Ways = RIGHT) -> int:
    """Bytes that a step reads and writes."""
    times = {
        "step": 1 if work else 0,
        "always": 1,
        "sequence": len(work),
        "token": sum(queries for queries, _ in work),
    }[ways.weights_read]
    weights = model["layers"] * sum(rows * columns for rows, columns in matrices(model, ways))
    weights += model["hidden"] * model["vocab"] if ways.output_read else 0
    layers = model["layers"] if ways.kv_layers else 1
    token = ways.kv_both * layers * model[ways.kv_heads] * model["head_dim"]
    tokens = 0
    for queries, context in work:
        read = {
            "context": context,
            "per query": keys_met(queries, context),
            "none": 0,
        }[ways.reads]
        tokens += read + (queries if ways.writes else 0)
    size = model["bytes_per_number"] if ways.per_number else 1
    return size * (times * weights + tokens * token)


def cost(model: Model, work: Work, card: dict[str, float]) -> dict[str, Any]:
    """What step_cost is to give."""
    flops, moved = count_flops(model, work), count_bytes(model, work)
    computing, moving = flops / card["flops"], moved / card["bandwidth"]
    seconds, bound = max((moving, "memory"), (computing, "compute"), key=lambda pair: pair[0])
    return {"flops": flops, "bytes": moved, "seconds": seconds, "bound": bound}
