"""12.2: what is told about a wrong cost."""

from __future__ import annotations

from typing import Any

from minipaged.course.checks.base import Failure
from minipaged.course.checks.lesson_12_count import Ways, cost, count_bytes, count_flops

FLOPS: tuple[tuple[Ways, str], ...] = (
    (Ways(per_multiplication=1), "A multiplication comes with an addition: that is 2 FLOP."),
    (
        Ways(output_rows="none"),
        "The last matrix, which gives a score for each token of the vocabulary, is missing.",
    ),
    (
        Ways(output_rows="token"),
        "The last matrix, of the vocabulary, was counted for every token. Only the last token of a "
        "sequence needs it.",
    ),
    (
        Ways(causal=False),
        "Every query of a chunk was given all keys of its sequence. A query meets its own key and "
        "those before it.",
    ),
    (
        Ways(own=False),
        "Each query was kept from its own key. It meets that as well as those before it.",
    ),
    (
        Ways(per_key=1),
        "Attention multiplies twice for each key: query with key, then weight with value.",
    ),
    (
        Ways(per_key=0),
        "Attention itself is missing: queries meet keys, and weights meet values.",
    ),
    (
        Ways(attention_layers=False),
        "Attention was counted in one layer. It happens in each of them.",
    ),
    (
        Ways(attention_heads="kv_heads"),
        "Attention was counted for the KV heads. Each query head has a score of its own for a key, "
        "whoever shares the key.",
    ),
    (Ways(mlp=2), "The MLP has three matrices."),
    (
        Ways(by_hidden=True),
        "The queries' matrix has heads · head_dim columns. In many models that equals `hidden`, in "
        "others it does not.",
    ),
    (Ways(query=1), "The matrix behind attention, of the output, is as large as the queries'."),
    (Ways(kv=1), "The keys have a matrix, and so have the values."),
    (
        Ways(kv=0, query=4),
        "Keys and values have kv_heads · head_dim columns, not as many as the queries.",
    ),
)
BYTES: tuple[tuple[Ways, str], ...] = (
    (
        Ways(weights_read="sequence"),
        "The weights were read once for each sequence. They are read once a step, and all "
        "sequences share them: that is what a batch is for.",
    ),
    (
        Ways(weights_read="token"),
        "The weights were read once for each token. They are read once a step, and all tokens "
        "share them.",
    ),
    (Ways(weights_read="always"), "A step without work reads nothing."),
    (Ways(output_read=False), "The matrix of the vocabulary is read as well."),
    (Ways(per_number=False), "Those are numbers. A number has bytes_per_number bytes."),
    (
        Ways(kv_heads="heads"),
        "Keys and values were counted for every query head. They are stored once for each KV head.",
    ),
    (Ways(kv_both=1), "Keys and values: a token has both."),
    (Ways(kv_layers=False), "Keys and values of one layer were counted. Each layer has its own."),
    (
        Ways(reads="per query"),
        "The context was read once for each query. All queries of a sequence share one reading.",
    ),
    (Ways(reads="none"), "The context is missing: its keys and values are read."),
    (
        Ways(writes=False),
        "The step's own tokens count twice: their keys and values are written, and then read with "
        "the rest of the context.",
    ),
    (Ways(mlp=2), "The MLP has three matrices."),
    (
        Ways(by_hidden=True),
        "The queries' matrix has heads · head_dim columns. In many models that equals `hidden`, in "
        "others it does not.",
    ),
    (Ways(query=1), "The matrix behind attention, of the output, is as large as the queries'."),
    (Ways(kv=1), "The keys have a matrix, and so have the values."),
    (
        Ways(kv=0, query=4),
        "Keys and values have kv_heads · head_dim columns, not as many as the queries.",
    ),
)
RULES = {
    "flops": "Two FLOP a multiplication: all matrices for each token, the last one for one token a "
    "sequence, and attention for each pair of a query and a key that it meets.",
    "bytes": "All matrices once a step; for each sequence keys and values of its context read, of "
    "its queries written, in all layers.",
    "seconds": "Computing takes flops / card's flops, moving bytes / bandwidth. Both happen at "
    "once, so the longer counts.",
    "bound": 'Return "compute" if computing takes longer than moving, else "memory".',
}
SUM = "The two times were added. They pass at once: the longer of them is what the step takes."
SHORTER = "That is the shorter of the two times. The step is over when both are done."
EXCHANGED = "The two words are exchanged: the bound is what takes longer."
TIE = 'Both take equally long: then the bound is "memory".'
SHAPE = 'step_cost returns a dict with the keys "flops", "bytes", "seconds" and "bound".'


def explain(failure: Failure) -> str:
    """The wrong idea that gives this number, or the rule that was broken."""
    model, work, card = failure.case.operations[0].args
    if failure.number == 0:
        return ""
    if failure.fault:
        return SHAPE
    key, got = failure.operation.args[0], failure.got
    if key == "bound":
        return _of_bound(cost(model, work, card), card, got)
    if type(got) not in (int, float) or got != got or abs(got) > 1e300:
        return RULES[key]
    if key == "seconds":
        return _of_seconds(cost(model, work, card), card, got)
    count, ideas = (count_flops, FLOPS) if key == "flops" else (count_bytes, BYTES)
    return next((said for ways, said in ideas if _near(count(model, work, ways), got)), RULES[key])


def _of_bound(right: dict[str, Any], card: dict[str, float], got: Any) -> str:
    if got not in ("compute", "memory"):
        return RULES["bound"]
    is_tie = right["flops"] / card["flops"] == right["bytes"] / card["bandwidth"]
    return TIE if is_tie else EXCHANGED


def _of_seconds(right: dict[str, Any], card: dict[str, float], got: float) -> str:
    computing, moving = right["flops"] / card["flops"], right["bytes"] / card["bandwidth"]
    for number, said in ((computing + moving, SUM), (min(computing, moving), SHORTER)):
        if _near(number, got):
            return said
    return RULES["seconds"]


def _near(number: float, got: float) -> bool:
    return abs(number - got) <= 1e-7 * abs(number)
