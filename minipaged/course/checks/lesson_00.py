"""Lesson 00. 00.1 blocks_needed(num_tokens, block_size): the blocks that hold so many tokens.

Every way to the right number is accepted. Rounding up through a float,
math.ceil(num_tokens / block_size), is exact for every num_tokens below 2**53, and a pool of that
many slots does not exist. Counting blocks in a loop is slow but right. So the cases stay below
2**20 tokens, where a loop still ends in a moment.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from minipaged.course.checks.base import Check, Row
from minipaged.course.script import Case, Operation

MAX_TOKENS = 2**20


def visible() -> list[Case]:
    """The cases in the notebook: each border of a block once, and other block sizes."""
    return [
        _case("37 tokens", 37, 16, "Two blocks are full and a third is begun."),
        _case("one slot left", 47, 16, "A third block has room for one more token."),
        _case("exactly full", 48, 16, "Three blocks are full to the last slot; none is begun."),
        _case("one token more", 49, 16, "Three blocks are full and the next token has arrived."),
        _case("a single token", 1, 16, "The first token already needs a block to stand in."),
        _case("nothing yet", 0, 16, "A request that has no token yet holds no block."),
        _case("smaller blocks", 37, 4, "The same 37 tokens, but a block holds only four."),
        _case("blocks of one", 5, 1, "Blocks of one token: as many blocks as tokens."),
        _case("one large block", 20, 128, "All 20 tokens fit into the first block."),
    ]


def hidden(seed: int) -> list[Case]:
    """24 further cases: on, just below and just above a border, anywhere, and very long."""
    rng = random.Random(f"00.1/{seed}")
    sizes = [(rng.randrange(1, 400), rng.choice((2, 3, 8, 16, 32, 100))) for _ in range(5)]
    pairs = [(blocks * size + by, size) for blocks, size in sizes for by in (-1, 0, 1)]
    pairs += [(rng.randrange(5000), rng.randrange(1, 300)) for _ in range(6)]
    pairs += [(rng.randrange(MAX_TOKENS // 2, MAX_TOKENS), rng.randrange(1, 300)) for _ in range(2)]
    pairs += [(0, rng.randrange(1, 300))]
    return [_case("hidden", tokens, size, "A case of other sizes.") for tokens, size in pairs]


def _case(name: str, num_tokens: int, block_size: int, story: str) -> Case:
    return Case(name, story, (Operation((num_tokens, block_size)),))


def blocks_that_hold(num_tokens: int, block_size: int) -> int:
    """The definition, not a formula: full blocks, and one more if tokens are left over."""
    full, left_over = divmod(num_tokens, block_size)
    return full + (1 if left_over else 0)


def _oracle(case: Case) -> list[int]:
    return [blocks_that_hold(*operation.args) for operation in case.operations]


SWAPPED = (
    "The arguments have changed places: divide num_tokens by block_size, not the other way round."
)
FIXED = (
    "block_size makes no difference to the result: the same tokens in smaller blocks need more of "
    "them. Is 16 written into the code?"
)
CONSTANT = "The answer is always the same: compute it from num_tokens and block_size."

# the misconceptions that an answer is compared with, most telling first
MISTAKES: tuple[tuple[Callable[[int, int], int], str], ...] = (
    (
        lambda n, b: n // b,
        "The count is rounded down, so the tokens in the last, partly filled block have no place. "
        "A started block is a whole block.",
    ),
    (
        lambda n, b: n // b + 1,
        "One block is added every time, also when the last block is exactly full (and when there "
        "is no token at all). It is needed only if tokens are left over.",
    ),
    (
        lambda n, b: round(n / b),
        "The count is rounded to the nearest whole number, so a last block that is less than half "
        "full is dropped. A started block is a whole block, however little is in it.",
    ),
    (
        lambda n, b: max(1, blocks_that_hold(n, b)),
        "All is right but for a request without tokens: it holds no block at all.",
    ),
    (
        lambda n, b: n % b,
        "This is the number of tokens in the last block. Asked for is the number of blocks.",
    ),
    (
        lambda n, b: blocks_that_hold(n, b) * b,
        "This is the number of slots in those blocks. Asked for is the number of blocks.",
    ),
    # without tokens there is nothing to divide by: whoever answers then has thought of it
    (lambda n, b: n and blocks_that_hold(b, n), SWAPPED),
    (lambda n, b: n and b // n, SWAPPED),
    (lambda n, b: blocks_that_hold(n, 16), FIXED),
    (lambda n, b: n // 16, FIXED),
    (lambda n, b: n // 16 + 1, FIXED),
)


def diagnose(rows: Sequence[Row]) -> str:
    """The misconception that gives all of the answers, wrong and right ones."""
    for mistake, sentence in MISTAKES:
        if all(mistake(*row.args) == row.got for row in rows):
            return sentence
    if len(rows) > 1 and len({row.got for row in rows}) == 1:
        return CONSTANT
    return ""


CHECKS = {"00.1": Check(visible, hidden, _oracle, diagnose)}
