"""02.2 BlockPool(num_blocks, make_queue): who may use which block, by counting holders.

The oracle runs each script on PoolModel, a dict of counts and a list. The learner's pool is made
with the plain queue of fixtures.py, so a mistake in 02.1 cannot fail it. No block has a hash yet;
what hashes change in the order of reuse belongs to lesson 09.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence
from typing import Any

from minipaged.course import plain
from minipaged.course.checks.base import Check, Failure, Raises
from minipaged.course.checks.lesson_02_queue import REFUSALS, replay, show_ids
from minipaged.course.script import Case, Operation


class PoolModel:
    """Counts in a dict, free ids in a list: slow, and plain enough to be read as the rule."""

    def __init__(self, num_blocks: int, make_queue: object = None) -> None:
        self.counts = dict.fromkeys(range(num_blocks), 0)
        self.free_queue = list(range(num_blocks))

    @property
    def num_blocks(self) -> int:
        return len(self.counts)

    @property
    def num_free(self) -> int:
        return len(self.free_queue)

    def refcount(self, block_id: int) -> int:
        return self.counts[block_id]

    def block_hash(self, block_id: int) -> None:
        return None

    def allocate(self, count: int) -> list[int]:
        if count > self.num_free:
            raise MemoryError
        taken, self.free_queue = self.free_queue[:count], self.free_queue[count:]
        self.counts.update(dict.fromkeys(taken, 1))
        return taken

    def share(self, block_ids: Sequence[int]) -> None:
        if not set(block_ids) <= set(self.counts):
            raise ValueError
        for block_id in block_ids:
            self.counts[block_id] += 1
        self.free_queue = [b for b in self.free_queue if not self.counts[b]]

    def free(self, block_ids: Sequence[int]) -> None:
        if any(block_ids.count(b) > self.counts.get(b, 0) for b in block_ids):
            raise ValueError
        for block_id in reversed(block_ids):
            self.counts[block_id] -= 1
            if not self.counts[block_id]:
                self.free_queue.insert(0, block_id)


# name, story, blocks, steps: "allocate2", "share0", "free0,1" are calls; "held0,1" asks for the
# refcounts of 0 and 1, "left" for num_free, "queue" for the free queue
ALONE = (
    ("a fresh pool", "Six blocks, nobody holds one.", 6, "blocks left queue held0"),
    (
        "two blocks for A",
        "A asks for two blocks, then for none.",
        *(6, "allocate2 held0,1,2 left queue allocate0 left"),
    ),
    (
        "one comes back",
        "Of four blocks one is allocated, then freed.",
        *(4, "allocate1 left free0 left held0"),
    ),
    (
        "too much at once",
        "Four of six blocks are held; three more are asked for, then the two that are left.",
        *(6, "allocate4 allocate3 left queue held4,5 allocate2 left"),
    ),
    (
        "a table comes back",
        "A's table is [0, 1, 2] and B's is [3, 4]. A finishes, then B; C needs three blocks.",
        *(6, "allocate3 allocate2 free0,1,2 queue free3,4 queue allocate3 queue"),
    ),
)
TOGETHER = (
    (
        "two holders",
        "B's table takes in A's first block. A finishes, then B.",
        *(4, "allocate2 share0 held0,1 free0,1 queue held0 free0 queue left held0"),
    ),
    (
        "an idle block is wanted again",
        "A gave both blocks back. Before anybody else gets them, B asks for block 1.",
        *(4, "allocate2 free0,1 share1 held1 left queue allocate3"),
    ),
    (
        "sharing what does not exist",
        "A list holds a good id and one that no block has. It is refused as a whole.",
        *(4, "allocate1 share0,2,4 held0,2 queue share2,-1 queue"),
    ),
    (
        "freed after a copy",
        "A's table is [0, 1]; B's is a copy of it, until B writes and gets block 2 in place of "
        "block 1. B finishes, then A, then A once more by mistake.",
        *(6, "allocate2 share0,1 allocate1 free1 held0,1,2 free0,2 free0,1 held0,1,2 queue"),
        "free0,1 queue left",
    ),
    (
        "twice in one call",
        "Block 0 has two holders that finish in one call. Then two more are given back.",
        *(4, "allocate1 share0 free0,0 left queue held0 free0,0 queue held0"),
    ),
    (
        "twice, with another between",
        "Block 0 has two holders and stands in the list twice, before and behind block 1.",
        *(4, "allocate2 share0 free0,1,0 held0,1 queue left"),
    ),
    (
        "one too many in a list",
        "A's table is [0, 1, 2]. By mistake block 1 stands in the list twice. In other lists "
        "stand ids that nobody has.",
        *(6, "allocate3 free0,1,2,1 held0,1,2 left queue free2,5 held2 queue free2,6 held2 queue"),
        "allocate3 free-1 held5 left",
    ),
)


def visible() -> list[Case]:
    """One holder a block: allocating and freeing; then several, and what must be refused."""
    return [_case(*row) for row in (*ALONE, *TOGETHER)]


def _case(name: str, story: str, num_blocks: int, *steps: str) -> Case:
    words = " ".join(steps).split()
    return _script(name, story, num_blocks, *(one for word in words for one in _steps(word)))


def _steps(word: str) -> list[Operation]:
    """A step as ALONE and TOGETHER have it."""
    name = word.rstrip("-,0123456789")
    ids = [int(number) for number in word.removeprefix(name).split(",") if number]
    if name in ASKED:
        return [ASKED[name]]
    if name == "held":
        return _refs(*ids)
    return [_allocate(*ids) if name == "allocate" else Operation((ids,), "pool", name)]


def hidden(seed: int) -> list[Case]:
    """16 random scripts on pools of other sizes, about a third of their calls to be refused, and 2
    in which a block stands in a list twice."""
    rng = random.Random(f"02.2/{seed}")
    return [_random_case(rng) for _ in range(16)] + [_twice(rng) for _ in range(2)]


def _twice(rng: random.Random) -> Case:
    """All blocks are held; one that is held twice stands in a list around others."""
    num_blocks = rng.randrange(3, 9)
    around, *between = rng.sample(range(num_blocks), rng.randrange(2, num_blocks + 1))
    refs = _refs(*range(num_blocks))
    calls = [_allocate(num_blocks), _free(-1), _share(-1), _share(around)]
    calls.append(_free(around, *between, around))
    steps = [one for call in calls for one in (call, QUEUE, *refs)]
    return _script("hidden", "A pool of another size.", num_blocks, *steps, FREE)


def _random_case(rng: random.Random) -> Case:
    num_blocks = rng.randrange(2, 9)
    model = PoolModel(num_blocks)
    operations: list[Operation] = []
    for _ in range(10):
        operation = _random_call(rng, model)
        with contextlib.suppress(*REFUSALS):  # such a call stays in the script: it is to be refused
            getattr(model, operation.method)(*operation.args)
        operations += [operation, QUEUE, *_refs(*range(num_blocks))]
    return _script("hidden", "A pool of another size.", num_blocks, *operations, FREE)


def _random_call(rng: random.Random, model: PoolModel) -> Operation:
    num_blocks, what = model.num_blocks, rng.randrange(8)
    held = [b for b in model.counts for _ in range(model.counts[b])]
    if what < 3:
        return _allocate(rng.randrange(min(4, num_blocks + 1)))
    if what < 5:
        ids = [rng.randrange(num_blocks) for _ in range(rng.randrange(1, 4))]
        return _share(*ids, *([num_blocks] if rng.random() < 0.2 else []))
    ids = rng.sample(held, rng.randrange(min(5, len(held) + 1)))
    wrong = [rng.randrange(num_blocks)] if rng.random() < 0.3 else []
    return _free(*ids, *wrong)


def _allocate(count: int) -> Operation:
    return Operation((count,), "pool", "allocate")


def _share(*block_ids: int) -> Operation:
    return Operation((list(block_ids),), "pool", "share")


def _free(*block_ids: int) -> Operation:
    return Operation((list(block_ids),), "pool", "free")


def _refs(*block_ids: int) -> list[Operation]:
    return [Operation((block_id,), "pool", "refcount") for block_id in block_ids]


FREE = Operation((), "pool", "num_free", how="get")
QUEUE = Operation((), "pool", "free_queue", how="list")
BLOCKS = Operation((), "pool", "num_blocks", how="get")
ASKED = {"left": FREE, "queue": QUEUE, "blocks": BLOCKS}


def _script(name: str, story: str, num_blocks: int, *operations: Operation) -> Case:
    made = Operation((num_blocks, plain.Kept("PlainQueue")), keep="pool")
    return Case(name, story, (made, *operations))


def _oracle(case: Case) -> list[Any]:
    return replay(case, PoolModel)[0]


REFUSE = {
    "allocate": "More blocks than are free cannot be had: allocate raises MemoryError.",
    "share": "An id that no block has is refused (ValueError), and -1 is such an id too.",
    "free": (
        "A block is freed as often as it is held and not once more. Count, before anything is "
        "changed, how often each id stands in the list: more often than it is held is a double "
        "free (ValueError). No block has the id -1, though a list has such an index."
    ),
}
NOTHING = {
    "allocate": (
        "All or nothing: an allocation that is refused takes no block off the queue. Compare with "
        "what is free before you take the first one."
    ),
    "share": (
        "All or nothing: if one id of the list is refused, none of the others gets a holder. Look "
        "at all of them before you change the first one."
    ),
    "free": (
        "All or nothing: a call that is refused as a double free has changed no count and queued "
        "no block. Look at the whole list before you change the first count."
    ),
}
LAWS = {
    "": "At first every block is free, nobody holds one, and the queue has them in order.",
    "allocate": "allocate takes ids from the head of the queue; each has one holder, refcount 1.",
    "share": (
        "share adds one holder a block. A block that was free stops being free: it leaves the "
        "queue, wherever it stands."
    ),
    "free": (
        "free takes one holder from each block. Those that have none left go to the front of the "
        "queue one by one, from the end of the list to its beginning; those that somebody still "
        "holds go nowhere."
    ),
}


def explain(failure: Failure) -> str:
    """The rule of the pool that was broken."""
    operation = failure.operation
    if isinstance(failure.expected, Raises):
        return REFUSE.get(operation.method, "")
    if operation.method in REFUSE:
        return LAWS[operation.method]
    refused, method = _last_change(failure.case, failure.number)
    return NOTHING[method] if refused else LAWS[method]


def _last_change(case: Case, number: int) -> tuple[bool, str]:
    """The last call before an operation that changes the pool; whether it had to be refused."""
    for before in range(number - 1, 0, -1):
        if case.operations[before].method in REFUSE:
            expected = replay(case, PoolModel, before + 1)[0]
            return isinstance(expected[-1], Raises), case.operations[before].method
    return False, ""


def picture(case: Case, number: int) -> str:
    """Refcounts and free queue before an operation, as they should be."""
    pool = replay(case, PoolModel, number)[1]
    if pool is None:
        return ""
    ids, counts = (
        "".join(f"{part:>3}" for part in row) for row in zip(*pool.counts.items(), strict=True)
    )
    return f"block    {ids}\nrefcount {counts}\nfree       {show_ids(pool.free_queue)}"


CHECK = Check(visible, hidden, _oracle, explain=explain, picture=picture)
