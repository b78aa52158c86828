"""09.2 HashIndex(block_size, pool, hash_function): which block holds which prefix.

How the index finds its blocks is nobody's business: a chain of hashes passes, and so does a
dictionary of whole prefixes. What may be observed is what match returns, which blocks are known,
and what the pool was told.
"""

from __future__ import annotations

import random
from typing import Any

from minipaged.course import plain
from minipaged.course.checks.base import Check, Failure
from minipaged.course.checks.lesson_09_flaws import FLAWS
from minipaged.course.checks.lesson_09_models import IndexModel, before, came_of
from minipaged.course.checks.lesson_09_world import (
    HASHED,
    KNOWN,
    World,
    forget,
    index_case,
    match,
    publish,
)
from minipaged.course.script import Case, Operation

ALIKE = "one and 23, 12 and 3"
ONES, FIVES, NINES = [1, 2, 3, 4], [5, 6, 7, 8], [9, 9, 9, 9]
TWELVE = [*ONES, *FIVES, *NINES]


def visible() -> list[Case]:
    """Finding and publishing; blocks that go and come back; what must be kept apart."""
    return [*_finding(), *_forgetting(), *_apart()]


def _finding() -> list[Case]:
    return [
        index_case("an empty index", "Nothing was published yet.", 4, match(TWELVE), KNOWN, HASHED),
        index_case(
            "two full blocks",
            "A prompt of 9 tokens in the blocks 5, 2 and 7. Two of them are full, and published.",
            *(4, publish(TWELVE[:9], [5, 2, 7], 0, 2), KNOWN, HASHED),
            *(match(TWELVE[:9]), match([*ONES, 7, 7, 7, 7, 7]), match([7, *TWELVE])),
        ),
        index_case(
            "the whole prompt is known",
            "A prompt of 8 tokens, both blocks published. The same prompt again, a longer one, and "
            "shorter ones.",
            *(4, publish(TWELVE[:8], [0, 1], 0, 2), match(TWELVE[:8]), match(TWELVE[:9])),
            *(match(ONES), match(TWELVE[:5]), match([1])),
        ),
        index_case(
            "computed in part",
            "Of a prompt of 12 tokens only the first chunk is computed, so one block is published.",
            *(4, publish(TWELVE, [3, 0, 2], 0, 1), KNOWN, HASHED, match([*TWELVE, 1])),
        ),
        index_case(
            "computed in chunks",
            "12 tokens in chunks of 5 and 7: one block is full after the first, three after both.",
            *(4, publish(TWELVE, [3, 0, 2], 0, 1), publish(TWELVE, [3, 0, 2], 1, 3), KNOWN),
            match([*TWELVE, 1]),
        ),
        index_case(
            "on from a hit",
            "B's prompt begins like A's. B takes the two hits and publishes a block of its own "
            "behind them. C's prompt is B's and one token more.",
            *(4, publish(TWELVE[:8], [5, 2], 0, 2), match(TWELVE)),
            *(publish(TWELVE, [5, 2, 8], 2, 3), KNOWN, match([*TWELVE, 1])),
        ),
    ]


def _forgetting() -> list[Case]:
    three = publish(TWELVE, [3, 0, 2], 0, 3)
    return [
        index_case(
            "the last block goes",
            "A chain of three blocks. The last of them is handed out again.",
            *(4, three, forget(2), match([*TWELVE, 1]), KNOWN, HASHED),
        ),
        index_case(
            "a block in the middle goes",
            "The second of three goes, and comes back as another block with the same tokens.",
            *(4, three, forget(0), match([*TWELVE, 1]), KNOWN),
            *(publish(TWELVE, [3, 7, 9], 1, 2), KNOWN, match([*TWELVE, 1]), HASHED),
        ),
        index_case(
            "twins",
            "A and B computed the same 4 tokens at the same time, so two blocks hold them.",
            *(4, publish(ONES, [6], 0, 1), publish(ONES, [1], 0, 1), KNOWN, HASHED),
            *(match([*ONES, 9]), forget(6), KNOWN, match([*ONES, 9])),
            *(forget(1), KNOWN, HASHED, match([*ONES, 9])),
        ),
        index_case(
            "published once more",
            "Somebody publishes blocks that are known already. Nothing changes; and when they are "
            "gone, they are gone.",
            *(4, three, three, KNOWN, forget(3), match([*TWELVE, 1]), forget(0), forget(2)),
            *(KNOWN, match([*TWELVE, 1])),
        ),
        index_case(
            "never known",
            "A block is handed out that nobody ever published.",
            *(4, forget(9), three, forget(9), forget(2), forget(2), KNOWN, HASHED),
        ),
        index_case(
            "other contents",
            "Block 2 is handed out again and filled with other tokens.",
            *(4, three, forget(2), publish(NINES, [2], 0, 1), KNOWN, match([*NINES, 1])),
            match([*TWELVE, 1]),
        ),
    ]


def _apart() -> list[Case]:
    return [
        index_case(
            "the same second block",
            "Two prompts are known: [1 2 3 4 | 9 9 9 9] and [5 6 7 8 | 3 3 3 3]. A third one "
            "begins with 5 6 7 8 9 9 9 9.",
            *(4, publish([*ONES, *NINES], [0, 1], 0, 2)),
            *(publish([*FIVES, 3, 3, 3, 3], [2, 3], 0, 2), match([*FIVES, *NINES, 1])),
            match([*NINES, 1]),
        ),
        _alike(ALIKE, [1, 23], [12, 3]),
        index_case(
            "salt X and adapter X",
            "A prompt with an adapter X and no salt is known. Then it comes with neither, and "
            "with a salt X and no adapter.",
            *(4, publish(ONES, [0], 0, 1, ("", "X")), match([*ONES, 1])),
            *(match([*ONES, 1], ("X", "")), match([*ONES, 1], ("", "X"))),
            *(publish(ONES, [4], 0, 1, ("X", "")), match([*ONES, 1], ("X", "")), KNOWN),
        ),
        Case(
            "one hash for everything",
            "The hash function is replaced by one that always gives the same. [1 2 3 4] is known, "
            "[5 6 7 8] is looked up, then published, and a block behind it.",
            (
                Operation((), "PlainHashes", keep="pool"),
                Operation((4, plain.Kept("pool"), plain.Kept("one_hash")), keep="index"),
                *(publish(ONES, [0], 0, 1), match([*FIVES, 1]), match([*ONES, 1])),
                *(publish(TWELVE[4:], [1, 2], 0, 1), publish(TWELVE[4:], [1, 2], 1, 2)),
            ),
        ),
    ]


def hidden(seed: int) -> list[Case]:
    """The visible cases with other tokens, blocks and keys, and 6 small worlds."""
    rng = random.Random(f"09.2/{seed}")
    others = [_renamed(case, rng) for case in visible() if case.name != ALIKE]
    a, b, c = (rng.randrange(1, 10) for _ in range(3))
    others.append(_alike("hidden", [a, 10 * b + c], [10 * a + b, c]))
    return others + [World(rng).case() for _ in range(6)]


def _renamed(case: Case, rng: random.Random) -> Case:
    """The same events with other numbers; tokens that differ still differ."""
    tokens = rng.sample(range(1, 1000), 10)
    blocks = rng.sample(range(20), 10)
    letter = rng.choice("abc")

    def change(operation: Operation) -> Operation:
        if operation.target != "index" or not operation.args:
            return operation
        if operation.method == "forget":
            return forget(blocks[operation.args[0]])
        token_ids, *between, key = operation.args
        first = [tokens[token] for token in token_ids]
        table = [[blocks[block_id] for block_id in between[0]], *between[1:]] if between else []
        other = tuple(part and letter for part in key)
        return operation._replace(args=(first, *table, other))

    return Case("hidden", "Other numbers.", tuple(map(change, case.operations)))


def _alike(name: str, one: list[int], other: list[int]) -> Case:
    story = "The digits are the same, the tokens are not."
    return index_case(name, story, 2, publish(one, [0], 0, 1), match([*other, 1]), match([*one, 1]))


def _oracle(case: Case) -> list[Any]:
    return came_of(case.operations, IndexModel)


LAWS = {
    "match": (
        "match goes from the first block on and ends at the first one that is not known with "
        "exactly these tokens behind exactly this beginning. It takes whole blocks only, and so "
        "few that at least one token is left. Of several blocks with the same contents it returns "
        "the one published first."
    ),
    "publish": (
        "publish makes the entries first to last - 1 of the table known, tells the pool a hash for "
        "each (set_hash), and returns an empty list. It goes on from the block in front of them. "
        "If that one is unknown, because its hash collided, those behind it stay unknown too."
    ),
    "forget": (
        "forget makes one block unknown, here and in the pool (set_hash with None). Others with "
        "the same contents stay known, and so do the blocks behind it. A block that is not known "
        "is ignored."
    ),
    "known_blocks": "known_blocks lists every known block once, in ascending order.",
    "hashed": "What the index knows and what the pool was told must agree, block by block.",
    "": "A new index knows no block. It is made with a block size and a pool.",
}


def explain(failure: Failure) -> str:
    """The flaw that gives exactly this, if one is known; else the rule that was broken."""
    for flaw, sentence in FLAWS if not failure.fault else ():
        if _is_behind(flaw, failure):
            return sentence
    method = failure.operation.method
    if method in ("known_blocks", "hashed") and failure.number > 2:
        changes = (o.method for o in failure.case.operations[failure.number - 1 : 1 : -1])
        last = next((m for m in changes if m in ("publish", "forget")), "")
        return LAWS[last] if last and method == "hashed" else f"{LAWS[method]} {LAWS[last]}"
    return LAWS.get(method, "")


def _is_behind(flaw: type[IndexModel], failure: Failure) -> bool:
    """Whether a flawed index is right up to the failure and then gives what came."""
    script = failure.case.operations[: failure.number + 1]
    if script[-1].keep:
        return False
    *right, _ = came_of(script, IndexModel)
    *so_far, came = came_of(script, flaw)
    return so_far == right and plain.same(came, failure.got)


def picture(case: Case, number: int) -> str:
    """What should be known before an operation."""
    known = before(case, number, KNOWN, IndexModel)
    if not known:
        return ""
    names = before(case, number, Operation((), "index", "told"), IndexModel)
    return "\n".join(names)


CHECK = Check(visible, hidden, _oracle, explain=explain, picture=picture)
