"""05.2 fork_cost(prompt_len, n, block_size): copies made and blocks held once each of n samples of
one prompt has written its first own token.

The oracle plays it: a prompt is written, forked, and each fork writes one token.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from minipaged.course.checks.base import Check, Failure, Row
from minipaged.course.checks.lesson_05_plain import PlainForking
from minipaged.course.fixture_pools import PlainPool
from minipaged.course.script import Case, Operation


def visible() -> list[Case]:
    """Inside a block and on a border, one sample and many, blocks of one token."""
    return [
        _case("38 tokens", 38, 4, 16, "The prompt of the lesson: its third block holds 6 tokens."),
        _case("two samples", 6, 2, 4, "Two samples share a block that is filled in part."),
        _case("at a border", 8, 2, 4, "The prompt fills two blocks; nothing is begun."),
        _case("a larger border", 48, 4, 16, "Three full blocks, and four samples."),
        _case("one sample", 20, 1, 16, "Nobody to share with."),
        _case("a short prompt", 5, 3, 16, "The prompt does not fill its only block."),
        _case("one slot left", 47, 8, 16, "The first own token is the last of the block."),
        _case("blocks of one", 5, 4, 1, "Every block is full as soon as it is begun."),
        _case("many samples", 16, 64, 16, "One full block and 64 samples."),
    ]


def hidden(seed: int) -> list[Case]:
    """18 further cases: on a border, around it, anywhere."""
    rng = random.Random(f"05.2/{seed}")
    cases = []
    for size in (2, 3, 8, 16, 32):
        border = size * rng.randrange(1, 9)
        cases += [(border + by, rng.randrange(2, 12), size) for by in (-1, 0, 1)]
    cases += [(rng.randrange(1, 300), rng.randrange(1, 40), rng.randrange(1, 40)) for _ in range(3)]
    return [_case("hidden", *args, "A case of other sizes.") for args in cases]


def _case(name: str, prompt_len: int, n: int, block_size: int, story: str) -> Case:
    return Case(name, story, (Operation((prompt_len, n, block_size)),))


def played(prompt_len: int, n: int, block_size: int) -> tuple[int, int]:
    """(copies, blocks held) after a prompt, n - 1 forks of it, and a token written by each."""
    pool = PlainPool(prompt_len + n)
    first = PlainForking(block_size)
    for position in range(prompt_len):
        first.write(position, pool)
    tables = [first]
    for _ in range(n - 1):
        pool.share(first.block_ids)
        tables.append(first.fork())
    copies = [table.write(prompt_len, pool) for table in tables]
    return len(copies) - copies.count(None), pool.num_blocks - pool.num_free


def _oracle(case: Case) -> list[tuple[int, int]]:
    return [played(*operation.args) for operation in case.operations]


def _blocks(tokens: int, size: int) -> int:
    return -(-tokens // size)


def _copies(p: int, n: int, b: int) -> int:
    return played(p, n, b)[0]


def _held(p: int, n: int, b: int) -> int:
    return played(p, n, b)[1]


# the misconceptions that an answer is compared with, most telling first
MISTAKES: tuple[tuple[Callable[[int, int, int], tuple[int, int]], str], ...] = (
    (
        lambda p, n, b: (n if p % b else 0, _held(p, n, b)),
        "Every sample makes a copy here, the last one too. By then it is the only holder of the "
        "block, so it writes in place.",
    ),
    (
        lambda p, n, b: (n if p % b else 0, p // b + n + (p % b > 0)),
        "Every sample makes a copy here, the last one too, and the block of the prompt stays "
        "behind unused. The last holder writes in place, into that very block.",
    ),
    (
        lambda p, n, b: (n - 1, _held(p, n, b)),
        "A copy is counted where the prompt ends with a full block, too. There is nothing to copy "
        "then: each sample begins a block of its own, and the full one stays shared.",
    ),
    (
        lambda p, n, b: (n, _held(p, n, b)),
        "Not every sample makes a copy: nobody does where the prompt ends with a full block, and "
        "elsewhere the last holder writes in place.",
    ),
    (
        lambda p, n, b: (int(p % b > 0), _held(p, n, b)),
        "One copy serves one sample: the block that was copied still has all other holders. How "
        "many of the n have to make one?",
    ),
    (
        lambda p, n, b: (n - 1 if (p + 1) % b else 0, _held(p, n, b)),
        "The border was looked for one token too late. What counts is whether the prompt fills its "
        "last block, before anybody has written.",
    ),
    (
        lambda p, n, b: (0 if p % b else n - 1, _held(p, n, b)),
        "The wrong way round: the tail is copied where it is filled in part.",
    ),
    (
        lambda p, n, b: (_copies(p, n, b), n * _blocks(p + 1, b)),
        "Those are the blocks without any sharing. All full blocks of the prompt are held once.",
    ),
    (
        lambda p, n, b: (_copies(p, n, b), _blocks(p, b)),
        "Those are the blocks before anybody has written. Asked for is what is held once each "
        "sample has written a token of its own.",
    ),
    (
        lambda p, n, b: (_copies(p, n, b), _blocks(p, b) + n),
        "Where the prompt ends inside a block, that block was counted beside the n that hold the "
        "samples' tokens. It is one of them: the last holder writes in place.",
    ),
    (
        lambda p, n, b: (_copies(p, n, b), _blocks(p, b) + n - 1),
        "Where the prompt ends with a full block, all n samples need a block more: the full one is "
        "nobody's place to write.",
    ),
    (
        lambda p, n, b: (_held(p, n, b), _copies(p, n, b)),
        "The two numbers have changed places: copies first, then blocks.",
    ),
    (
        lambda p, n, b: played(p, n, 16),
        "block_size makes no difference to the result. Is 16 written into the code?",
    ),
)
RULE = (
    "Full blocks of the prompt stay shared. Each sample ends up with one further block of its own, "
    "and the last to write needs no copy."
)


NOT_WHOLE = "A number of blocks is a whole number. How many of the prompt's blocks are full?"


def diagnose(rows: Sequence[Row]) -> str:
    """The misconception that gives all of the answers, wrong and right ones."""
    if any(type(row.got) is tuple and float in map(type, row.got) for row in rows):
        return NOT_WHOLE
    for mistake, sentence in MISTAKES:
        if all(mistake(*row.args) == row.got for row in rows):
            return sentence
    return ""


def explain(failure: Failure) -> str:
    """What holds in every case."""
    return RULE


CHECK = Check(visible, hidden, _oracle, diagnose, explain)
