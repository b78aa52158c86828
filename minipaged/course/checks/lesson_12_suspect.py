"""12.3 split_attention(q, k_pool, v_pool, block_tables, seq_lens, split_size): a case for each
fault of suspect_kernel, and what is told about a result with faults left."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from typing import Any

from minipaged.course import expect
from minipaged.course.checks.base import Check, Close, Failure
from minipaged.course.checks.lesson_12_plain import FAULTS, Call, attention, pieces_of
from minipaged.course.plain import Array
from minipaged.course.script import Case, Operation

NAN = math.nan
TOLERANCE = (1e-4, 1e-5)
OUT, LSE = 0, 1
Row = tuple[list[float], list[list[float]], list[list[float]]]

SAID = {
    "Q": "Every sequence was read with the query of sequence 0: the query's address lacks the "
    "sequence.",
    "P": "All pieces of a sequence are stored in one place, and the places of the others are never "
    "written: the address in `parts` and `part_lse` lacks the piece.",
    "M": "No maximum is subtracted: e to a high score is inf in a float32, to a low one 0. "
    "Keep a running maximum, as in lesson 04.",
    "D": "What a piece has read is not divided by the sum of its exponentials.",
    "S": "Nothing is split: every piece has read all keys of its sequence. The output does not "
    "show it, as merging equal pieces changes nothing; the LSE does, and so would the time.",
}
SOFTMAX = {
    "sum": "When the maximum rises, the old sum of exponentials is not scaled to the new one.",
    "lse": "The LSE of a piece lacks the maximum that was subtracted: add it again.",
    "mixture": "When the maximum rises, the old mixture of values is not scaled to the new one.",
}
CHANGED = "split_attention returns two tensors, (out, LSE), as it was handed out."
NAN_LEFT = (
    "NaN came out. Is each piece stored at a place of its own, are slots without a token masked, "
    "and is -inf never subtracted from -inf?"
)
RULE = (
    "Piece s of sequence b has the keys s · split_size up to (s + 1) · split_size, or to the "
    "sequence's end; it stores their mean by softmax, and their LSE, in row (b · pieces + s) · "
    "heads + h."
)


def visible() -> list[Case]:
    """The cases in the notebook."""
    return [*_one_fault_each(), *_together()]


def _one_fault_each() -> Iterator[Case]:
    """The first five go by the order of the task's list."""
    yield _hand(
        "the query",
        "Two sequences, whose queries are 0 and 1. The second one's scores are 0 and -60: it reads "
        "its first value.",
        [([0.0], [[2.0]], [[5.0]]), ([1.0], [[0.0], [-60.0]], [[4.0], [8.0]])],
        split_size=2,
        parts=(OUT,),
    )
    yield _hand(
        "one place for all",
        "One sequence in two pieces of two keys, with scores 0 and three times -60: it reads its "
        "first value.",
        [([1.0], [[0.0], [-60.0], [-60.0], [-60.0]], [[2.0], [4.0], [6.0], [8.0]])],
        split_size=2,
        parts=(OUT,),
    )
    yield _hand(
        "no maximum",
        "One key with the score 1000.",
        [([1.0], [[1000.0]], [[5.0]])],
        split_size=2,
        parts=(OUT,),
    )
    yield _hand(
        "not divided",
        "Two keys with the score 0, values 2 and 4.",
        [([1.0], [[0.0]] * 2, [[2.0], [4.0]])],
        split_size=2,
        parts=(OUT,),
    )
    yield _hand(
        "nothing split",
        "Four keys with the score 0 in two pieces: the LSE of the whole is ln 4.",
        [([1.0], [[0.0]] * 4, [[1.0]] * 4)],
        split_size=2,
        parts=(LSE,),
    )


def _together() -> Iterator[Case]:
    """What has to stay right, or has to be right once a maximum is kept."""
    yield _hand(
        "far below zero",
        "Two keys with scores of -1000.",
        [([1.0], [[-1000.0]] * 2, [[2.0], [4.0]])],
        split_size=2,
    )
    yield _hand(
        "a rising maximum",
        "One piece of two blocks, with scores 0, 1, 3 and 2.",
        [([1.0], [[0.0], [1.0], [3.0], [2.0]], [[1.0], [2.0], [3.0], [4.0]])],
        split_size=4,
    )
    yield _drawn("a begun block", "5 keys in blocks of 4: three slots hold NaN.", [5], (4, 1, 2), 1)
    yield _drawn(
        "a short neighbour",
        "Sequences of 7, 0 and 2 keys in pieces of 2: the short ones have empty pieces.",
        [7, 0, 2],
        (2, 1, 1),
        1,
    )
    yield _drawn("shared KV heads", "4 query heads on 2 KV heads.", [6, 3], (2, 2, 2), 2, 4)


def hidden(seed: int) -> list[Case]:
    """3 others."""
    rng = random.Random(f"12.3/{seed}")
    return [_hidden(rng, number) for number in (1, 2, 3)]


def _hidden(rng: random.Random, number: int) -> Case:
    size, kv_heads, group = (2, 4, 1)[number % 3], 1 + (number == 3), 1 + (number == 2)
    lengths = [rng.randrange(size + 1, 3 * size + 1) for _ in range(2)]
    if number % 3 == 1:
        lengths.append(0)
    split_size = size * (1 + number % 2)
    shape = (size, kv_heads, rng.choice((1, 2, 4)))
    height = 200.0 if number == 2 else 1.0
    return _drawn(
        "hidden",
        "Other sequences.",
        lengths,
        shape,
        group,
        split_size,
        seed=rng.random(),
        height=height,
    )


def _hand(
    name: str, story: str, rows: list[Row], *, split_size: int, parts: tuple[int, ...] = (OUT, LSE)
) -> Case:
    """Sequences (query, keys, values) with one head, in blocks of 2."""
    lengths = [len(keys) for _, keys, _ in rows]
    tables, num_blocks = _tables(lengths, 2, list(range(sum(-(-n // 2) for n in lengths) + 1)))
    pools = [[[NAN]] * (2 * num_blocks) for _ in range(2)]
    for table, (_, keys, values) in zip(tables, rows, strict=True):
        for key in range(len(keys)):
            slot = table[key // 2] * 2 + key % 2
            pools[0][slot], pools[1][slot] = keys[key], values[key]
    shape = (num_blocks, 2, 1, 1)
    k_pool, v_pool = (Array.of("float32", shape, [r[0] for r in pool]) for pool in pools)
    q = Array.of("float32", (len(rows), 1, 1), [query[0] for query, _, _ in rows])
    return _case(name, story, (q, k_pool, v_pool, *_lists(tables, lengths), split_size), parts)


def _drawn(
    name: str,
    story: str,
    lengths: list[int],
    shape: tuple[int, int, int],
    group: int,
    split_size: int = 0,
    *,
    seed: float = 3,
    height: float = 1.0,
) -> Case:
    """Random numbers where a token was written, NaN elsewhere. shape: block size, KV heads, dim."""
    size, kv_heads, dim = shape
    rng = random.Random(seed)
    ids = list(range(sum(-(-n // size) for n in lengths) + 2))
    rng.shuffle(ids)
    tables, num_blocks = _tables(lengths, size, ids)
    written = {
        table[key // size] * size + key % size
        for table, length in zip(tables, lengths, strict=True)
        for key in range(length)
    }

    def numbers(count: int) -> list[float]:
        return [round(rng.uniform(-2, 2), 2) for _ in range(count)]

    def pool() -> Array:
        wide = kv_heads * dim
        slots = (numbers(wide) if s in written else [NAN] * wide for s in range(num_blocks * size))
        made = [number for slot in slots for number in slot]
        return Array.of("float32", (num_blocks, size, kv_heads, dim), made)

    heads = kv_heads * group
    q_numbers = [height * x for x in numbers(len(lengths) * heads * dim)]
    q = Array.of("float32", (len(lengths), heads, dim), q_numbers)
    arguments = (q, pool(), pool(), *_lists(tables, lengths), split_size or size)
    return _case(name, story, arguments, (OUT, LSE))


def _tables(lengths: list[int], size: int, ids: list[int]) -> tuple[list[list[int]], int]:
    """A block table for each sequence out of these ids, the last ones first; how many blocks."""
    free = list(ids)
    return [[free.pop() for _ in range(-(-length // size))] for length in lengths], len(ids)


def _lists(tables: list[list[int]], lengths: list[int]) -> tuple[Array, Array]:
    """Tables and lengths as tensors; what is behind a table's end means nothing."""
    width = max(map(len, tables)) + 1
    entries = [entry for table in tables for entry in [*table, *[999] * (width - len(table))]]
    return (
        Array.of("int64", (len(tables), width), entries),
        Array.of("int64", (len(lengths),), lengths),
    )


def _case(name: str, story: str, arguments: tuple[Any, ...], parts: tuple[int, ...]) -> Case:
    items = (Operation((part,), "read", how="item") for part in parts)
    return Case(name, story, (Operation(arguments, keep="read"), *items))


def _expected(call: Call, part: int, faults: str = "", softmax: str = "") -> Close:
    shape = call.q.shape if part == OUT else call.q.shape[:2]
    numbers = attention(call, faults, softmax)[part]
    return Close(Array.of("float32", shape, numbers), *TOLERANCE)


def _oracle(case: Case) -> list[Any]:
    call = Call(*case.operations[0].args)
    return [_expected(call, o.args[0]) for o in case.operations[1:]]


def explain(failure: Failure) -> str:
    """The fewest faults that give these numbers, or the rule that was broken."""
    if failure.number == 0:
        return ""
    right, got = failure.expected.value, failure.got
    if failure.fault or type(got) is not Array or got[:2] != right[:2]:
        return CHANGED
    call, part = Call(*failure.case.operations[0].args), failure.operation.args[0]
    for said, faults, softmax in _ideas():
        if expect.matches(_expected(call, part, faults, softmax), got):
            return said
    return RULE if all(x == x for x in got.numbers()) else NAN_LEFT


def _ideas() -> Iterator[tuple[str, str, str]]:
    """Faults left, the fewest first, and a maximum that is kept but not made good for."""
    for faults in FAULTS:
        yield SAID[faults], faults, ""
    for softmax, said in SOFTMAX.items():
        yield said, "", softmax
    for count in range(2, len(FAULTS) + 1):
        for some in itertools.combinations(FAULTS, count):
            yield f"{SAID[some[0]]} It is not the only fault left.", "".join(some), ""


def picture(case: Case, number: int) -> str:
    """What each piece of the last sequence has for head 0, and what it is to store."""
    if number == 0:
        return ""
    call = Call(*case.operations[0].args)
    last = call.q.shape[0] - 1
    lines = [f"sequence {last}, head 0:"]
    for piece, (scored, (row, lse)) in enumerate(pieces_of(call, last, 0)):
        scores = " ".join(f"{score:.4g}" for score, _ in scored) or "none"
        read = " ".join(f"{x:.4g}" for x in row) if scored else "anything"
        lines.append(f"  piece {piece}: scores {scores}; stores {read}, LSE {lse:.4g}")
    return "\n".join(lines)


CHECK = Check(visible, hidden, _oracle, explain=explain, picture=picture, tensors=True)
