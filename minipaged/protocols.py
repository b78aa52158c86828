"""The contract of every part of the engine that a learner can replace.

One Protocol a part. Each says who owns what, what may be called when, and what a call may cost.
The reference, a learner's class and the deliberately broken ones are held to the same text.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from minipaged.plan import StepPlan, StepResult
    from minipaged.request import FinishReason, Request


class FreeQueueLike(Protocol):
    """Block ids in the order in which they will be handed out. Every call is O(1).

    Made with the number of blocks; all ids are queued at first, in ascending order. The pool is
    its only user: nobody else adds or removes ids. An id is queued at most once.
    """

    def pop_head(self) -> int:
        """Take the first id; IndexError if there is none."""
        ...

    def append(self, block_id: int) -> None:
        """Queue an id last; ValueError if it is queued already."""
        ...

    def prepend(self, block_id: int) -> None:
        """Queue an id first; ValueError if it is queued already."""
        ...

    def remove(self, block_id: int) -> None:
        """Take out a given id; ValueError if it is not queued."""
        ...

    def __contains__(self, block_id: object) -> bool: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[int]:
        """Ids from head to tail; used by checks and pictures only, may cost O(queued)."""
        ...


class BlockPoolLike(Protocol):
    """Reference counts over a fixed number of blocks.

    Made with the number of blocks and a maker of free queues. refcount is the number of block
    tables that hold a block. A block is free exactly when its refcount is 0. Calls on several
    blocks are all or nothing, the order of the free queue included. A freed block keeps contents
    and hash until it is handed out again; one without a hash is reused before one with.
    """

    free_queue: FreeQueueLike

    @property
    def num_blocks(self) -> int: ...

    @property
    def num_free(self) -> int: ...

    def refcount(self, block_id: int) -> int: ...

    def block_hash(self, block_id: int) -> bytes | None: ...

    def set_hash(self, block_id: int, block_hash: bytes | None) -> None:
        """What a prefix cache knows the block by; None once it does not any more. O(1)."""
        ...

    def allocate(self, count: int) -> list[int]:
        """`count` ids with refcount 1; MemoryError if fewer are free. O(count)."""
        ...

    def share(self, block_ids: Sequence[int]) -> None:
        """One more holder each; a free block stops being free. O(blocks)."""
        ...

    def free(self, block_ids: Sequence[int]) -> None:
        """One holder fewer each; ValueError on a double free. Tail first. O(blocks)."""
        ...


class BlockTableLike(Protocol):
    """Logical to physical blocks of one sequence. Made with the block size.

    The table holds its blocks in the sense of refcount, but calls no pool: the manager allocates
    and frees. At every step the manager reads `block_ids`; when a request grows it calls
    append_blocks, and sends the entries that then stand in `block_ids` to the executor; when the
    request leaves it calls release. slot and slot_mapping are asked by KVManager.check, lessons
    and pictures: an executor does the same sum on its own copy, vectorised.
    """

    block_ids: list[int]

    def append_blocks(self, block_ids: Sequence[int]) -> None:
        """Room for more tokens at the end. O(new blocks)."""
        ...

    def slot(self, position: int) -> int:
        """The pool slot of a position; IndexError if there is no room for it. O(1)."""
        ...

    def slot_mapping(self, start: int, end: int) -> list[int]:
        """The slots of start … end - 1. O(end - start)."""
        ...

    def release(self) -> list[int]:
        """Empty the table and return its blocks, head first."""
        ...

    # A table without the next two will do (that of lesson 03 has none): the manager then makes
    # the twin from block_ids, and writes the entry there itself.

    def fork(self) -> BlockTableLike:
        """A table of its own with the same entries; the caller shares the blocks. O(entries)."""
        ...

    def replace(self, entry: int, block_id: int) -> int:
        """Let an entry lead to another block; returns the one it led to. O(1)."""
        ...


class SchedulerLike(Protocol):
    """What runs in this step.

    Made as make(config, manager, **policies): victim, preemption, admission, order. The engine
    calls schedule, then commit (or retract), in turn; add and finish only while no plan is out.

    waiting: the next to be admitted first. running: in order of admission. preempted: the victims
    of the latest schedule() or retract(). Every live request is in exactly one of the first two,
    with the status that belongs there. Blocks come from manager.grow and go by manager.release.

    A plan's items: a request that is new or was preempted sends its whole table (first_block 0),
    any other the entries that grow returned. plan.finished names every request that ended since
    the plan before, however it ended; each exactly once.
    """

    waiting: deque[Request]
    running: list[Request]
    preempted: list[Request]

    def add(self, request: Request) -> None:
        """Queue a request behind all others. O(1)."""
        ...

    def schedule(self) -> StepPlan:
        """Decide the next step. Cost grows with what is scheduled, not with queue or pool."""
        ...

    def commit(self, plan: StepPlan, result: StepResult) -> list[Request]:
        """Take over what the plan computed. O(items).

        For each item: num_computed_tokens grows by its tokens and num_inflight_tokens is 0 again;
        new tokens are appended one by one. A stop token after more than min_tokens outputs ends
        the request with reason STOP, the max_output_tokens-th output with LENGTH; its blocks are
        freed. Returns a new list of the requests that got tokens, the ended ones included.
        """
        ...

    def fork(self, parent: Request, child: Request) -> None:
        """Let a new request go on from where a live one is; between two steps only."""
        ...

    def finish(self, request: Request, reason: FinishReason) -> None:
        """End a request in whatever state it is and give back its blocks."""
        ...

    def retract(self, plan: StepPlan) -> None:
        """The plan could not be carried out: its requests wait again, nothing is lost."""
        ...


class VictimPolicy(Protocol):
    """Whom to preempt when a running request finds no block. O(running) at most.

    Asked again until the request can grow; must name one of `running` each time.
    """

    def __call__(self, running: Sequence[Request], needy: Request) -> Request:
        """Choose among `running` (admission order). `needy` itself may be the answer."""
        ...


class AdmissionPolicy(Protocol):
    """When a waiting or preempted request may enter.

    Not asked while nothing runs: a request that fits the empty pool must then be admitted. Having
    said no, it is asked again when more blocks are free, somebody came or went, or something
    became known to the prefix cache. It may have a method must_shed(num_free) -> bool as well:
    whether so few blocks are free that a running request has to give way, asked before every step.
    """

    def __call__(self, blocks_needed: int, num_free: int) -> bool:
        """May a request enter whose known tokens need `blocks_needed` more blocks? O(1)."""
        ...


class OrderPolicy(Protocol):
    """Which waiting request is to be admitted next. Asked once for each admission.

    If the one it names cannot be admitted now, nobody is: there is no overtaking by size.
    """

    def __call__(self, waiting: Sequence[Request], manager: Any) -> Request:
        """Choose among `waiting` (never empty): preempted requests first, as they came back."""
        ...


class AttentionLike(Protocol):
    """What queries read from the paged pool: kernels/meta.py has shapes and meaning.

    Called once a layer and step, after this step's keys and values were stored. It may keep what
    it works out from `meta` in meta.memo for the other layers.
    """

    def __call__(self, q: Any, k_pool: Any, v_pool: Any, meta: Any) -> Any: ...


class PreemptionPolicy(Protocol):
    """What becomes of a victim's keys and values: "recompute" drops them, "swap" moves them to the
    host. A swap for which the host has no room, or that max_preemptions forbids, is a recompute.
    """

    def __call__(self, request: Request, num_blocks: int) -> str: ...


class PrefixCacheLike(Protocol):
    """An index over the pool's blocks: which full, computed blocks hold which tokens.

    Made with (block_size, pool). It holds no reference of its own: a block in use is protected by
    its holders, an idle one waits on the free queue with its contents, and when the pool hands it
    out again the manager calls forget. It tells the pool which blocks are known (pool.set_hash):
    those are reused last. key separates what must not be shared: (cache_salt, adapter).
    """

    def match(self, token_ids: Sequence[int], key: tuple[str, str]) -> list[int]:
        """Blocks of the longest known prefix, head first: whole blocks only, and so few that at
        least one token is left to compute. O(tokens of the prefix)."""
        ...

    def publish(
        self,
        token_ids: Sequence[int],
        block_ids: Sequence[int],
        first: int,
        last: int,
        key: tuple[str, str],
    ) -> list[tuple[int, int]]:
        """Make entries first … last - 1 of a block table known: full blocks, computed by now.

        token_ids and block_ids are those of the whole sequence; the entries before `first` were
        matched or published. Returns (entry, block): table entries for which the index has
        another block with the same tokens, to be used instead. O(tokens of the new blocks).
        """
        ...

    def forget(self, block_id: int) -> None:
        """The pool has handed this block out again: its contents are lost. Ignored if unknown."""
        ...

    def known_blocks(self) -> Iterable[int]:
        """Every block that match can return; for checks only, may cost O(known)."""
        ...


class LinkedPrefixCacheLike(PrefixCacheLike, Protocol):
    """An index that can keep what it works out about a block: its link, a hash say.

    Optional: with these three the manager keeps each request's links. A link stands for a block
    and all blocks before it.
    """

    def extend_links(
        self,
        links: list[tuple[bytes, bytes]],
        token_ids: Sequence[int],
        num_full: int,
        key: tuple[str, str],
    ) -> None:
        """Bring the list of a sequence's links, head first, to `num_full`."""
        ...

    def match_links(self, links: Sequence[tuple[bytes, bytes]]) -> list[int]:
        """match, for a sequence whose first full blocks have these links. O(blocks found)."""
        ...

    def publish_links(self, links: Sequence[tuple[bytes, bytes]], block_ids: Sequence[int]) -> None:
        """publish, for full, computed blocks that have these links; never another to use."""
        ...


class DraftLike(Protocol):
    """Guesses the next tokens of a request for speculative decoding."""

    def __call__(self, token_ids: Sequence[int], max_tokens: int) -> list[int]: ...
