"""11.2 block_figures(block_size, layout, lengths, head_dim, number_bytes).

The oracle counts: it lays a pool out piece of 16 bytes by piece, lets 32 threads each take one, and
hands out blocks to tokens one after another.
"""

from __future__ import annotations

import itertools
import random
from typing import Any, NamedTuple

from minipaged.course.checks.base import Check, Failure, Raises
from minipaged.course.checks.lesson_11_address import place
from minipaged.course.script import Case, Operation

THREADS, PIECE = 32, 16  # threads of an instruction, bytes that each of them loads
KEYS = ("run", "tile", "table", "expected_waste", "waste")


class Asked(NamedTuple):
    """The arguments of one call."""

    block_size: int
    layout: str
    lengths: list[int]
    head_dim: int
    number_bytes: int


def longest_run(a: Asked) -> int:
    """Bytes side by side among those that one instruction loads, in the best case."""
    pieces = a.head_dim * a.number_bytes // PIECE  # of a row
    if a.layout == "NHD":
        order = [divmod(n, pieces) for n in range(THREADS)]  # (key, piece of its row)
    else:
        order = [(key, 0) for key in range(THREADS)]
    at = sorted(_piece(a, key, piece, pieces) for key, piece in order)
    best = run = 1
    for before, after in itertools.pairwise(at):
        run = run + 1 if after == before + 1 else 1
        best = max(best, run)
    return best * PIECE


def _piece(a: Asked, key: int, piece: int, pieces: int) -> int:
    """The place of a piece in the pool, for head 0 of 2; blocks far from each other."""
    block, slot = 3 * (key // a.block_size), key % a.block_size
    if a.layout == "NHD":
        return place([(block, 0), (slot, a.block_size), (0, 2), (piece, pieces)])
    return place([(block, 0), (0, 2), (piece, pieces), (slot, a.block_size)])


def counted(a: Asked) -> tuple[int, int]:
    """Entries of the tables, and slots without a token, by handing blocks out."""
    entries = empty = 0
    for length in a.lengths:
        free = 0
        for _ in range(length):
            if not free:
                entries, free = entries + 1, a.block_size
            free -= 1
        empty += free
    return entries, empty


def answer(a: Asked) -> Any:
    """The figures, or the exception that is due."""
    if a.layout not in ("NHD", "packed"):
        return Raises("ValueError")
    entries, empty = counted(a)
    return {
        "run": longest_run(a),
        "tile": sum(a.number_bytes for _ in range(a.block_size * a.head_dim)),
        "table": 4 * entries,
        "expected_waste": len(a.lengths) * sum(range(a.block_size)) / a.block_size,
        "waste": empty,
    }


def explain(failure: Failure) -> str:
    """The first figure that is wrong, and what gives this number."""
    a, right, got = Asked(*failure.operation.args), failure.expected, failure.got
    if type(right) is Raises:
        return 'There are two layouts, "NHD" and "packed". Any other is a ValueError.'
    if type(right) is not dict or type(got) is not dict or failure.fault:
        return ""
    for key in KEYS:
        if key not in got:
            return f"The key {key!r} is missing."
        said = _wrong(key, a, right[key], got[key])
        if said:
            return said
    extra = [key for key in got if key not in KEYS]
    return "There are keys that nobody asked for." if extra else ""


def _wrong(key: str, a: Asked, right: Any, got: Any) -> str:
    if type(got) not in (int, float):
        return f"{key} is to be a number."
    if got == right:
        if type(got) is type(right):
            return ""
        kind = "a float: an average need not be whole" if key == "expected_waste" else "an int"
        return f"{key} has the right value. Give it as {kind}."
    idea = next((said for value, said in _ideas(key, a) if value == got), "")
    return f"{key}: {idea or _RULES[key]}"


def _ideas(key: str, a: Asked) -> list[tuple[float, str]]:
    """Wrong values of a figure, and what is behind each."""
    return {
        "run": _about_runs,
        "tile": _about_tiles,
        "table": _about_tables,
        "expected_waste": _about_averages,
        "waste": _about_waste,
    }[key](a)


def _about_runs(a: Asked) -> list[tuple[float, str]]:
    row = a.head_dim * a.number_bytes
    return [
        (THREADS * PIECE, "this is all that the instruction loads. Does it lie side by side?"),
        (row, "a whole row lies side by side in NHD only, and an instruction has an end."),
        (
            PIECE * a.block_size,
            "16 bytes of every slot lie side by side when packed, and an instruction loads 512 "
            "bytes at most.",
        ),
        (a.block_size * row, "this is the tile. One instruction loads 512 bytes at most."),
        (PIECE, "16 bytes are what one thread loads. Where are those of its neighbours?"),
        (a.head_dim, "count in bytes, not in numbers."),
    ]


def _about_tiles(a: Asked) -> list[tuple[float, str]]:
    row = a.head_dim * a.number_bytes
    return [
        (2 * a.block_size * row, "this is K and V. Asked for is K alone."),
        (a.block_size * a.head_dim, "count in bytes, not in numbers."),
        (row, "this is one slot. A block has block_size of them."),
        (
            PIECE * a.block_size,
            "this is one slice of the packed block. The tile is all of head_dim.",
        ),
    ]


def _about_tables(a: Asked) -> list[tuple[float, str]]:
    size, total = a.block_size, sum(a.lengths)
    return [
        (counted(a)[0], "an entry takes 4 bytes."),
        (4 * sum(n // size for n in a.lengths), "a block that is not full needs an entry, too."),
        (
            4 * sum(n // size + 1 for n in a.lengths),
            "a request whose last block is full has no entry behind it.",
        ),
        (4 * total, "an entry serves a whole block."),
        (4 * -(-total // size), "requests share no blocks here: round up for each of them."),
    ]


def _about_averages(a: Asked) -> list[tuple[float, str]]:
    size, count = a.block_size, len(a.lengths)
    return [
        ((size - 1) / 2, "this is one request."),
        (
            count * size / 2,
            "the last block holds at least one token, so between 0 and block_size - 1 slots are "
            "left.",
        ),
        (count * ((size - 1) // 2), "an average need not be whole: divide by 2 with /."),
        (count * (size - 1), "this is the worst case. On average it is half of that."),
    ]


def _about_waste(a: Asked) -> list[tuple[float, str]]:
    size = a.block_size
    return [
        (a.number_bytes * counted(a)[1], "count slots, not bytes."),
        (sum(size - n % size for n in a.lengths), "a full last block leaves nothing empty."),
        (-sum(a.lengths) % size, "every request has a last block of its own."),
        (
            sum(n % size for n in a.lengths),
            "these are the tokens in the last blocks. What is empty is the rest.",
        ),
    ]


_RULES = {
    "run": "which of 32 pieces of 16 bytes lie side by side? In NHD those of one row, packed those "
    "of the slots of one block; 512 bytes at most.",
    "tile": "block_size rows of head_dim numbers.",
    "table": "4 bytes for every block that holds a token.",
    "expected_waste": "(block_size - 1) / 2 for each request.",
    "waste": "slots of the blocks that a request holds, without its tokens; all requests together.",
}

SHORT, LONG = [20], [100, 16, 33, 1]


def visible() -> list[Case]:
    """Block sizes 4, 16 and 128 in both layouts, and other shapes of a head."""
    llama = "head_dim 128 in half precision."
    named = [
        _case(f"{layout}, blocks of {size}", f"Four requests; {llama}",
              Asked(size, layout, LONG, 128, 2))
        for layout in ("NHD", "packed") for size in (4, 16, 128)
    ]  # fmt: skip
    twenty = "One answer of 20 tokens: 108 of 128 slots are empty."
    return [
        *named,
        _case("20 tokens in 128", twenty, Asked(128, "NHD", SHORT, 128, 2)),
        _case("full last blocks", "32 and 16 tokens.", Asked(16, "packed", [32, 16], 128, 2)),
        _case("head_dim 64", "A row of 128 bytes.", Asked(16, "NHD", LONG, 64, 2)),
        _case("head_dim 256", "A row is as long as an instruction.", Asked(8, "NHD", [9], 256, 2)),
        _case("float32", "4 bytes a number.", Asked(16, "NHD", LONG, 256, 4)),
        _case("float32, packed", "4 bytes a number.", Asked(2, "packed", LONG, 128, 4)),
        _case("nobody", "No request at all.", Asked(16, "NHD", [], 128, 2)),
        _case("blocks of 1", "No slot is empty.", Asked(1, "packed", LONG, 128, 2)),
        _case("no such layout", '"HND" is not one of the two.', Asked(16, "HND", LONG, 128, 2)),
    ]


def hidden(seed: int) -> list[Case]:
    """16 other sizes and lengths, and one other layout."""
    rng = random.Random(f"11.2/{seed}")
    cases = [_asked(rng, ("NHD", "packed")[k % 2], k) for k in range(16)]
    cases.append(cases[0]._replace(layout=rng.choice(("nhd", "x", "pack"))))
    return [_case("hidden", "Another block size.", a) for a in cases]


def _asked(rng: random.Random, layout: str, k: int) -> Asked:
    size = (4, 64, 16, 8, 32, 2)[k % 6] if layout == "packed" else rng.choice((4, 6, 16, 48))
    lengths = [rng.randrange(1, 200) for _ in range(rng.randrange(2, 6))] + [3 * size]
    dim = rng.choice((32, 64, 80, 128, 512) if layout == "NHD" else (64, 96, 256))
    return Asked(size, layout, lengths, dim, rng.choice((2, 4)))


def picture(case: Case, number: int) -> str:
    """What one instruction loads, and the requests in blocks."""
    a = Asked(*case.operations[number].args)
    blocks = ", ".join(f"{n} in {-(-n // a.block_size)}" for n in a.lengths) or "none"
    row = a.head_dim * a.number_bytes
    return (
        f"a row of one head: {row} bytes; an instruction: 32 x 16 = 512\ntokens in blocks: {blocks}"
    )


def _case(name: str, story: str, asked: Asked) -> Case:
    return Case(name, story, (Operation(tuple(asked)),))


def _oracle(case: Case) -> list[Any]:
    return [answer(Asked(*operation.args)) for operation in case.operations]


CHECK = Check(visible, hidden, _oracle, explain=explain, picture=picture)
