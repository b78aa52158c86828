"""09.3 CachingPool(num_blocks, make_queue): the order of reuse, and all or nothing with hits.

The pool of lesson 02 is given; its rules are checked there. Here blocks have hashes.
"""

from __future__ import annotations

import contextlib
import random
from typing import Any

from minipaged.course import plain
from minipaged.course.checks.base import Check, Failure, Raises
from minipaged.course.checks.lesson_09_models import PoolModel, before, came_of
from minipaged.course.script import Case, Operation

REFUSALS = (ValueError, MemoryError)


# name, story, blocks, steps: "allocate2", "share0", "free0,1" are calls; "take1,2+3" takes hits and
# new blocks; "known0,1" gives hashes; "gone0" takes one away; "held0,1" asks for refcounts, "hash0"
# for a hash, "left" for num_free, "queue" for the free queue
ROWS = (
    (
        "known blocks go last",
        "A's table is [0, 1, 2], all full and known. A finishes.",
        *(6, "allocate3 held0 known0,1,2 free0,1,2 hash2 queue left allocate4"),
    ),
    (
        "unknown blocks go first",
        "Nobody published B's two blocks. B finishes.",
        *(5, "allocate2 free0,1 queue allocate2"),
    ),
    (
        "a tail that is not full",
        "A's table is [0, 1, 2, 3]. The last block is not full, so it is not known. A finishes.",
        *(7, "allocate4 known0,1,2 free0,1,2,3 queue allocate2 queue"),
    ),
    (
        "the end of a prefix is lost first",
        "3 blocks, a chain of three, finished; then one new block is needed.",
        *(3, "allocate3 known0,1,2 free0,1,2 queue allocate1 hash0 hash1 hash2"),
    ),
    (
        "one after the other",
        "A finishes before B. A's blocks are idle for longer, so they go first.",
        *(5, "allocate2 allocate2 known0,1,2,3 free0,1 free2,3 queue allocate3"),
    ),
    (
        "handed out, forgotten",
        "A block that was known is handed out again and comes back with other contents.",
        *(3, "allocate3 known0,1 free0 free2 free1 queue allocate3 hash0 hash1 free0,1 queue"),
    ),
    (
        "known while it is idle",
        "What a block is known by can change while it waits; its place on the queue does not.",
        *(4, "allocate2 known0,1 free0,1 queue gone1 hash1 queue known2 queue allocate4"),
    ),
    (
        "two holders",
        "B's table begins with A's block. It is free when the second of them finishes.",
        *(4, "allocate2 known0,1 share0 free0,1 queue held0 free0 queue hash0"),
    ),
    (
        "still refused",
        "What the pool of lesson 02 refused is refused here: a double free, ids that no block has.",
        *(4, "allocate4 known0,1 free0,1,2,1 held0,1,2 queue free0,4 free-1 share0,4 share3,-1"),
        "held0,1,2,3 queue share1 free1,0,1 held0,1 queue",
    ),
    (
        "hits that nobody holds",
        "A has finished. B's prompt begins like A's: two hits, and two blocks more.",
        *(6, "allocate3 known0,1,2 free0,1,2 take0,1+2 queue held0,1,2,3,4 hash0 hash3 left"),
    ),
    (
        "a hit at the head of the queue",
        "The block that is next to be handed out is a hit itself.",
        *(2, "allocate2 known0,1 free0,1 queue take1+1 queue held0,1 hash1 hash0"),
    ),
    (
        "one block too few",
        "5 blocks are free. 2 of them are the hits, and 4 others are needed. Refused.",
        *(5, "allocate3 known0,1 free0,1,2 queue take0,1+4 left queue held0,1,2 hash0"),
    ),
    (
        "just enough",
        "The same with 6 free blocks: all are in use afterwards.",
        *(6, "allocate3 known0,1 free0,1,2 queue take0,1+4 left queue held0,1,2,3,4,5"),
    ),
    (
        "hits that somebody holds",
        "The hits are still A's, so they take no free block.",
        *(4, "allocate2 known0,1 take0,1+2 held0,1,2,3 left take0+1 held0 take0,1+0 held0,1"),
    ),
)
LOOKS = {
    "left": Operation((), "pool", "num_free", how="get"),
    "queue": Operation((), "pool", "free_queue", how="list"),
}


def visible() -> list[Case]:
    """The order of reuse, then hits; case 23 and case 9 are the field's own."""
    return [_case(*row) for row in ROWS]


def _case(name: str, story: str, num_blocks: int, *steps: str) -> Case:
    operations = [one for word in " ".join(steps).split() for one in _steps(word)]
    return _script(name, story, num_blocks, *operations)


def _steps(word: str) -> list[Operation]:
    name = word.rstrip("-+,0123456789")
    ids, _, new = word.removeprefix(name).partition("+")
    block_ids = [int(block_id) for block_id in ids.split(",") if block_id]
    if name in LOOKS:
        return [LOOKS[name]]
    if name == "take":
        return [_take(block_ids, int(new))]
    if name in ("known", "gone"):
        return [_set_hash(b, f"h{b}" if name == "known" else None) for b in block_ids]
    if name in ("held", "hash"):
        method = "refcount" if name == "held" else "block_hash"
        return [Operation((block_id,), "pool", method) for block_id in block_ids]
    argument: Any = block_ids[0] if name == "allocate" else block_ids
    return [Operation((argument,), "pool", name)]


def hidden(seed: int) -> list[Case]:
    """14 random scripts, and 7 in which each rule decides, on pools of other sizes."""
    rng = random.Random(f"09.3/{seed}")
    return [_random_case(rng) for _ in range(14)] + _decisive(rng)


def _decisive(rng: random.Random) -> list[Case]:
    """Of `size` blocks a table had `length`, all known; `some` of them are hits."""
    size = rng.randrange(5, 9)
    length = rng.randrange(3, size)
    some = rng.randrange(1, length)
    every = ",".join(map(str, range(size)))
    table, hits = every[: 2 * length - 1], every[: 2 * some - 1]
    looks = f"left queue held{every} hash{every}"
    begun = f"allocate{length} known{table} free{table} queue"
    scripts = [
        (size, f"{begun} take{hits}+{size - some + 1} {looks}"),
        (size, f"{begun} take{hits}+{size - some} {looks}"),
        (length, f"{begun} take{length - 1}+{some} queue held{length - 1} hash{length - 1}"),
        (size, f"allocate{length} known{table} take{hits}+{size - length} {looks}"),
        (length, f"{begun} allocate{some} hash{table} free{table[-1]} queue"),
        (size, f"{begun} gone{some} queue known{some} queue hash{some}"),
        (size, f"allocate{length} known{table} gone{some} free{table} queue allocate{length}"),
    ]
    return [_case("hidden", "A pool of another size.", n, steps) for n, steps in scripts]


def _random_case(rng: random.Random) -> Case:
    num_blocks = rng.randrange(2, 9)
    model = PoolModel(num_blocks, list)
    tables: list[list[int]] = []
    operations: list[Operation] = []
    for _ in range(12):
        operation = _random_call(rng, model, tables)
        with contextlib.suppress(*REFUSALS):  # such a call stays in the script: it is refused
            came = getattr(model, operation.method)(*operation.args)
            if came:
                tables.append(came)
        operations += [operation, LOOKS["queue"]]
    every = range(num_blocks)
    looks = [Operation((b,), "pool", m) for b in every for m in ("refcount", "block_hash")]
    return _script("hidden", "A pool of another size.", num_blocks, *operations, *looks)


def _random_call(rng: random.Random, model: PoolModel, tables: list[list[int]]) -> Operation:
    """One of the calls that a manager makes; finished tables leave `tables`."""
    what = rng.randrange(8)
    known = [b for b in range(model.num_blocks) if model.hashes[b] is not None]
    if what < 2:
        return Operation((rng.randrange(min(3, model.num_blocks) + 1),), "pool", "allocate")
    if what < 4 and known:
        hits = rng.sample(known, rng.randrange(1, len(known) + 1))
        return _take(hits, rng.randrange(3))
    if what < 6 and tables:
        table = tables.pop(rng.randrange(len(tables)))
        twice = [rng.choice(table)] if rng.random() < 0.2 else []
        return Operation(([*table, *twice],), "pool", "free")
    block_id = rng.randrange(model.num_blocks)
    return _set_hash(block_id, f"h{block_id}" if model.counts[block_id] else None)


def _take(hits: list[int], num_new: int) -> Operation:
    return Operation((hits, num_new), "pool", "take")


def _set_hash(block_id: int, block_hash: str | None) -> Operation:
    return Operation((block_id, block_hash), "pool", "set_hash")


def _script(name: str, story: str, num_blocks: int, *operations: Operation) -> Case:
    made = Operation((num_blocks, plain.Kept("PlainQueue")), keep="pool")
    return Case(name, story, (made, *operations))


def _oracle(case: Case) -> list[Any]:
    return came_of(case.operations, PoolModel)


LAWS = {
    "free": (
        "A freed block that is known goes to the end of the queue, since its contents may be "
        "wanted again; one that is not known goes to the front; one that somebody still holds "
        "stays off it. The list is worked off from its end, so of a known table the tail is handed "
        "out before the head. Its hash stays."
    ),
    "allocate": (
        "allocate takes blocks from the head of the queue. Each of them has one holder then, and "
        "none of them is known any more: their contents are about to be written over."
    ),
    "set_hash": (
        "set_hash notes what a block is known by, and block_hash gives it back. It counts when "
        "the block is freed next: a block that waits on the queue keeps its place."
    ),
    "take": (
        "take gives each hit one holder more, so those that nobody held leave the queue first; "
        "hits keep their hashes. The new blocks come from the head of what is left. It returns the "
        "hits, then the new."
    ),
    "share": "share adds a holder; a block that was free leaves the queue and keeps its hash.",
    "": "At first every block is free, nobody holds one, and none is known.",
}
TOO_FEW = (
    "A hit that nobody holds stands on the free queue and has to be taken from there: it needs a "
    "free block as a new one does. A hit that somebody holds needs none. If too few are free, take "
    "raises MemoryError."
)
REFUSE = "A double free, and an id that no block has, raise ValueError as in lesson 02."
NOTHING = (
    "All or nothing: a call that is refused has changed no count and not the order of the queue. "
    "Count before you share or allocate anything; hits that nobody holds need a free block each."
)
NEEDS_LESS = "A hit that somebody holds takes no free block: count only those that nobody holds."
ENOUGH = "Enough blocks are free. If they are as many as the call needs, that is enough."


def explain(failure: Failure) -> str:
    """The rule of the pool that was broken."""
    method = failure.operation.method
    if isinstance(failure.expected, Raises):
        return TOO_FEW if method == "take" else REFUSE
    if method == "take" and failure.fault == "MemoryError":
        return NEEDS_LESS if _has_held_hits(failure) else ENOUGH
    if method in LAWS:
        return LAWS[method]
    refused, last = _last_change(failure.case, failure.number)
    return NOTHING if refused else LAWS[last]


def _has_held_hits(failure: Failure) -> bool:
    looks = [Operation((hit,), "pool", "refcount") for hit in failure.operation.args[0]]
    return any(before(failure.case, failure.number, look, PoolModel) for look in looks)


def _last_change(case: Case, number: int) -> tuple[bool, str]:
    """The last call before an operation that changes the pool; whether it had to be refused."""
    for place in range(number - 1, 0, -1):
        if case.operations[place].method in LAWS:
            came = came_of(case.operations[: place + 1], PoolModel)[-1]
            return isinstance(came, Raises), case.operations[place].method
    return False, ""


def picture(case: Case, number: int) -> str:
    """Holders, hashes and the queue before an operation, as they should be."""
    lines = before(case, number, Operation((), "pool", "state"), PoolModel)
    return "" if lines is None else "\n".join(lines)


CHECK = Check(visible, hidden, _oracle, explain=explain, picture=picture)
