"""The KV manager: a random machine against check(), and check() against planted faults."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from minipaged.cache.manager import InvariantError, KVManager
from minipaged.config import SamplingParams
from minipaged.request import Request

OPERATIONS = 0


def request(request_id: str, length: int) -> Request:
    return Request(request_id, list(range(length)), SamplingParams())


class ManagerMachine(RuleBasedStateMachine):
    """Requests come, grow, commit, shrink back and go; a plain model predicts every count."""

    live = Bundle("live")

    @initialize(num_blocks=st.integers(1, 24), block_size=st.sampled_from([1, 2, 3, 4, 16]))
    def start(self, num_blocks, block_size):
        self.manager = KVManager(num_blocks, block_size)
        self.held: dict[str, int] = {}
        self.number = 0

    def blocks(self, tokens):
        return (tokens + self.manager.block_size - 1) // self.manager.block_size

    @rule(target=live, length=st.integers(1, 60))
    def arrive(self, length):
        self.number += 1
        return request(f"r{self.number}", length)

    @rule(one=live, share=st.floats(0.01, 1), twice=st.booleans())
    def grow(self, one, share, twice):
        for _ in range(1 + twice):
            self.count()
            self.grow_once(one, share)
            self.commit(one)

    @rule(one=live, share=st.floats(0.01, 1))
    def grow_without_commit(self, one, share):
        self.count()
        self.grow_once(one, share)

    def grow_once(self, one, share):
        num_new = max(1, int(share * (one.num_tokens - one.num_computed_tokens)))
        before = list(self.manager.pool.free_queue)
        held = self.held.get(one.request_id, 0)
        missing = max(0, self.blocks(one.num_computed_tokens + num_new) - held)
        grown = self.manager.grow(one, num_new)
        if missing > len(before):
            assert grown is None
            assert list(self.manager.pool.free_queue) == before
        else:
            assert grown == (held, before[:missing])
            self.held[one.request_id] = held + missing

    @rule(one=live)
    def commit(self, one):
        one.num_computed_tokens += one.num_inflight_tokens
        one.num_inflight_tokens = 0
        if one.num_computed_tokens == one.num_tokens:
            one.token_ids.append(7)

    @rule(one=live)
    def preempt(self, one):
        self.count(one.request_id in self.held)
        self.manager.release(one)
        self.held.pop(one.request_id, None)
        assert one.num_computed_tokens == one.num_inflight_tokens == 0

    @rule(one=consumes(live))
    def leave(self, one):
        self.count(one.request_id in self.held)
        self.manager.release(one)
        self.held.pop(one.request_id, None)

    def count(self, changes_something=True):
        """Count calls of the manager; releases of requests without blocks do not count."""
        global OPERATIONS
        OPERATIONS += changes_something

    @invariant()
    def all_is_well(self):
        if not hasattr(self, "manager"):
            return
        self.manager.check()
        tables = {i: len(t.block_ids) for i, t in self.manager.tables.items()}
        assert tables == {i: n for i, n in self.held.items() if n}
        used = sum(self.held.values())
        assert self.manager.pool.num_free == self.manager.num_blocks - used


def test_ten_thousand_random_operations():
    """How many operations an example holds is hypothesis's choice, so runs are added up."""
    global OPERATIONS
    OPERATIONS = rounds = 0
    while OPERATIONS < 10_000:
        assert rounds < 10, f"only {OPERATIONS} operations in {rounds} runs"
        run_state_machine_as_test(
            ManagerMachine,
            settings=settings(
                max_examples=250,
                stateful_step_count=80,
                suppress_health_check=list(HealthCheck),
            ),
        )
        rounds += 1


class Known:
    """A prefix cache that knows what it is told to know."""

    def __init__(self, block_size, pool):
        self.known = set()

    def match(self, token_ids, key):
        return []

    def publish(self, token_ids, block_ids, first, last, key):
        return []

    def forget(self, block_id):
        self.known.discard(block_id)

    def known_blocks(self):
        return self.known


def two_requests() -> tuple[KVManager, Request, Request]:
    manager = KVManager(8, 4, prefix_cache=Known)
    a, b = request("a", 10), request("b", 5)
    for one in (a, b):
        manager.grow(one, one.num_tokens)
        one.num_computed_tokens, one.num_inflight_tokens = one.num_tokens, 0
    manager.check()
    return manager, a, b


def leak(manager, a, b):
    manager.tables["a"].block_ids.pop()


def refcount_too_high(manager, a, b):
    manager.pool.blocks[0].refcount = 2


def queued_while_held(manager, a, b):
    manager.pool.free_queue.append(manager.tables["a"].block_ids[0])


def lost_from_the_queue(manager, a, b):
    manager.pool.free_queue.pop_head()


def more_tokens_than_slots(manager, a, b):
    b.num_computed_tokens = 9


def two_tables_one_block(manager, a, b):
    manager.tables["b"].block_ids[1] = manager.tables["a"].block_ids[0]


def write_into_a_shared_block(manager, a, b):
    tail = manager.tables["b"].block_ids[1]
    manager.pool.share([tail])
    a_table = manager.tables["a"].block_ids
    manager.pool.free([a_table[-1]])
    a_table[-1] = tail
    b.num_inflight_tokens = 1


def write_into_a_hashed_block(manager, a, b):
    tail = manager.tables["b"].block_ids[1]
    b.num_computed_tokens, b.num_inflight_tokens = 8, 0
    manager.pool.blocks[tail].block_hash = b"h"
    manager.prefix.cache.known.add(tail)
    manager.check()
    b.num_computed_tokens, b.num_inflight_tokens = 4, 1


def hash_of_a_half_full_block(manager, a, b):
    tail = manager.tables["b"].block_ids[1]
    manager.pool.blocks[tail].block_hash = b"h"
    manager.prefix.cache.known.add(tail)


def known_without_a_hash(manager, a, b):
    manager.prefix.cache.known.add(5)


def queue_with_a_cycle(manager, a, b):
    queue = manager.pool.free_queue
    queue._next[queue._prev[queue.num_blocks]] = queue._next[queue.num_blocks]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (leak, "has refcount 1 but 0 holders"),
        (refcount_too_high, "block 0 has refcount 2 but 1 holders"),
        (queued_while_held, "is on the free queue"),
        (lost_from_the_queue, "has refcount 0 but is off the free queue"),
        (more_tokens_than_slots, "'b' has 9 tokens in 8 slots"),
        (two_tables_one_block, "has refcount 1 but 2 holders"),
        (write_into_a_shared_block, "about to be written but is shared or hashed"),
        (write_into_a_hashed_block, "about to be written but is shared or hashed"),
        (hash_of_a_half_full_block, "hashed but not full"),
        (known_without_a_hash, "disagree whether block 5 is known"),
        (queue_with_a_cycle, "more than once"),
    ],
)
def test_check_finds_a_planted_fault(fault, words):
    manager, a, b = two_requests()
    fault(manager, a, b)
    with pytest.raises(InvariantError, match=words):
        manager.check()


def test_release_of_a_request_without_blocks_is_no_error():
    manager = KVManager(2, 2)
    manager.release(request("a", 3))
    manager.check()
