"""Prefix caching in the engine, both indices, over the ledger: cases 9, 14 and 20 to 26.

What is written never depends on the cache. The prompts are lists of tokens of their own; equal
beginnings are equal on purpose.
"""

from __future__ import annotations

import random

import pytest
from conftest import Lab

from minipaged.config import SamplingParams

KINDS = ["hash", "radix"]
pytestmark = pytest.mark.parametrize("kind", KINDS)


class CacheLab(Lab):
    """A Lab with a prefix cache; `computed` counts tokens computed for a request."""

    def ask(self, request_id, prompt, max_tokens=1, salt="", adapter="", **params):
        self.outputs[request_id] = []
        self.engine.add_request(
            request_id,
            list(prompt),
            SamplingParams(max_tokens=max_tokens, ignore_eos=True, **params),
            cache_salt=salt,
            adapter=adapter,
        )

    def computed(self, request_id):
        items = [item for plan in self.executor.plans for item in plan.items]
        return sum(len(item.token_ids) for item in items if item.request_id == request_id)

    def hits(self, request_id, prompt, **options):
        """Run one request to its end; prompt tokens that it did not have to compute."""
        before = self.engine.manager.prefix.stats.hits
        self.ask(request_id, prompt, **options)
        self.run()
        return self.engine.manager.prefix.stats.hits - before

    def known(self):
        return sorted(self.engine.manager.prefix.cache.known_blocks())

    def assert_clean(self):
        assert self.pool.num_free == self.pool.num_blocks
        assert not self.engine.manager.tables and not self.engine.requests
        self.engine.check()


@pytest.fixture
def lab(kind):
    """A maker of engines with this kind of cache."""
    return lambda **options: CacheLab(enable_prefix_caching=kind, **options)


def cold(prompt, max_tokens):
    """What a request writes with nothing cached."""
    plain = Lab(block_size=1, num_blocks=2000)
    plain.add("a", prompt, max_tokens)
    plain.run()
    return plain.outputs["a"]


def test_case_20_a_prompt_that_is_cached_whole(lab):
    lab = lab(block_size=4, num_blocks=8)
    prompt = list(range(1, 9))
    hits = [lab.hits(name, prompt, max_tokens=3) for name in "abc"]
    assert hits == [0, 4, 4]  # the last block is computed again: a token has to be
    assert [lab.computed(name) for name in "abc"] == [10, 6, 6]
    first = next(i for plan in lab.executor.plans for i in plan.items if i.request_id == "b")
    assert (first.start_position, len(first.token_ids)) == (4, 4)
    assert lab.outputs["a"] == lab.outputs["b"] == lab.outputs["c"] == cold(prompt, 3)
    lab.assert_clean()


def test_case_21_no_hit_on_a_block_that_is_not_computed_yet(lab):
    lab = lab(block_size=4, num_blocks=20)
    prompt = list(range(1, 10))
    for name in "ab":
        lab.ask(name, prompt, max_tokens=4)
    lab.step()
    assert lab.engine.manager.prefix.stats.hits == 0
    lab.ask("c", prompt, max_tokens=4)
    lab.step()
    assert lab.engine.manager.prefix.stats.hits == 8
    lab.run()
    assert lab.outputs["a"] == lab.outputs["b"] == lab.outputs["c"] == cold(prompt, 4)
    lab.assert_clean()


def test_case_22_an_aborted_chunked_prefill_leaves_nothing_wrong(lab):
    lab = lab(block_size=4, num_blocks=2, max_num_batched_tokens=4)
    lab.ask("a", range(1, 9))
    lab.step()
    lab.engine.abort("a")
    assert lab.hits("b", range(11, 19)) == 0
    assert lab.hits("a2", range(1, 9)) == 0
    assert lab.outputs["a2"] == cold(range(1, 9), 1)
    lab.assert_clean()


def test_case_23_the_end_of_a_chain_goes_first(lab):
    lab = lab(block_size=4, num_blocks=3)
    prompt = list(range(1, 13))
    lab.hits("a", prompt)
    assert len(lab.known()) == 3
    lab.ask("b", [99])
    lab.run()
    assert len(lab.known()) == 2
    assert lab.hits("c", prompt) == 8
    assert lab.engine.metrics.prefix_cache_evictions_total == 1
    lab.assert_clean()


@pytest.mark.parametrize(("free", "enters"), [(5, False), (6, True)])
def test_case_9_idle_hits_count_as_needed(lab, free, enters):
    lab = lab(block_size=4, num_blocks=free + 4, max_model_len=100)
    shared = list(range(1, 9))
    lab.hits("a", [*shared, 50])  # leaves two known blocks, idle
    lab.ask("holder", range(200, 213), max_tokens=3)  # holds 4 blocks while the other is tried
    lab.step()
    pool = lab.pool
    assert pool.num_free == free
    before = [pool.refcount(b) for b in range(pool.num_blocks)], list(pool.free_queue)
    lab.ask("b", [*shared, *range(60, 76)])  # needs the 2 idle ones and 4 new
    manager, request = lab.engine.manager, lab.engine.requests["b"]
    hits = manager.prefix.match(request)
    assert len(hits) == 2
    assert lab.engine.scheduler._may_enter(request, hits) == enters
    assert ([pool.refcount(b) for b in range(pool.num_blocks)], list(pool.free_queue)) == before
    lab.run()
    lab.assert_clean()


def test_case_14_a_preempted_request_finds_its_own_blocks(lab):
    lab = lab(block_size=4, num_blocks=40)
    lab.ask("a", range(1, 11), max_tokens=3)
    lab.step()
    scheduler, request = lab.engine.scheduler, lab.engine.requests["a"]
    scheduler._preempt(request)
    lab.step()
    item = lab.executor.plans[-1].items[0]
    assert (item.start_position, len(item.token_ids), len(item.block_ids)) == (8, 3, 3)
    assert lab.engine.manager.prefix.stats.hits == 0  # its own: no hit
    lab.run()
    assert lab.outputs["a"] == cold(range(1, 11), 3)
    lab.assert_clean()


def test_case_25_chunks_do_not_matter_and_a_wrong_parent_never_hits(lab):
    lab = lab(block_size=4, num_blocks=40, max_num_batched_tokens=5)
    lab.hits("a", range(1, 13))
    assert lab.hits("b", [*range(1, 13), 50]) == 12
    lab.hits("c", [1, 2, 3, 4, 9, 9, 9, 9, 7])
    assert lab.hits("d", [5, 6, 7, 8, 9, 9, 9, 9, 7]) == 0
    assert lab.outputs["d"] == cold([5, 6, 7, 8, 9, 9, 9, 9, 7], 1)


def test_case_26_salt_and_adapter_are_different_things(lab):
    lab = lab(block_size=4, num_blocks=40)
    prompt = list(range(1, 10))
    assert lab.hits("a", prompt, adapter="X") == 0
    assert lab.hits("b", prompt, salt="X") == 0
    assert lab.hits("c", prompt, salt="X") == 8
    assert lab.hits("d", prompt, adapter="X") == 8
    assert lab.hits("e", prompt) == 0
    with pytest.raises(ValueError, match="cache_salt is 3"):
        lab.engine.add_request("f", prompt, cache_salt=3)


def test_the_answer_of_one_turn_is_a_prefix_of_the_next(lab):
    lab = lab(block_size=4, num_blocks=60)
    talk, computed = list(range(1, 12)), []
    for turn in range(4):
        name = f"t{turn}"
        lab.ask(name, talk, max_tokens=6)
        lab.run()
        computed.append(lab.computed(name))
        talk += [*lab.outputs[name], 900 + turn, 901 + turn]
    assert computed[0] == 16
    # the last output was never stored; what is left over behind the last full block is computed
    assert all(count <= 5 + 6 + 3 for count in computed[1:])
    assert lab.engine.metrics.prefix_cache_hits_total > 30
    lab.assert_clean()


@pytest.mark.parametrize("order", ["fcfs", "lpm"])
@pytest.mark.parametrize("seed", range(6))
def test_random_shared_prefixes_change_no_answer(lab, seed, order):
    rng = random.Random(seed)
    lab = lab(
        block_size=rng.choice((1, 2, 4)),
        num_blocks=rng.choice((24, 40)),
        max_num_seqs=rng.choice((2, 5)),
        max_num_batched_tokens=rng.choice((3, 8, 64)),
        order=order,
    )
    stems = [[rng.randrange(1, 4) for _ in range(12)] for _ in range(3)]
    asked = {}
    for number in range(14):
        stem = rng.choice(stems)
        prompt = stem[: rng.randrange(1, 12)] + [
            rng.randrange(1, 4) for _ in range(rng.randrange(4))
        ]
        asked[f"r{number}"] = (prompt, rng.randrange(1, 7))
    pending = list(asked.items())
    while pending or lab.engine.has_unfinished_requests():
        if pending and rng.random() < 0.5:
            name, (prompt, outputs) = pending.pop()
            lab.ask(name, prompt, max_tokens=outputs)
        lab.step()
    for name, (prompt, outputs) in asked.items():
        room = lab.engine.manager.num_slots + 1 - len(prompt)
        assert lab.outputs[name] == cold(prompt, min(outputs, room))
    lab.assert_clean()


def test_several_samples_share_what_was_cached(lab):
    lab = lab(block_size=4, num_blocks=40, max_num_seqs=6)
    prompt = list(range(1, 14))
    lab.hits("a", prompt)
    lab.ask("b", prompt, max_tokens=4, n=3, temperature=1.0, seed=1)
    lab.run()
    assert lab.computed("b") + lab.computed("b~1") + lab.computed("b~2") == 1 + 3 * 3
    lab.assert_clean()


def test_longest_prefix_first_brings_those_together_that_share(kind):
    """Four groups interleaved, and a pool that holds the prefix of one group and a half."""
    hits, passed = {}, {}
    for order in ("fcfs", "lpm"):
        lab = CacheLab(
            enable_prefix_caching=kind,
            block_size=4,
            num_blocks=16,
            max_num_seqs=1,
            order=order,
        )
        for number in range(24):
            group = number % 4
            lab.ask(f"r{number}", [*range(group * 100 + 1, group * 100 + 33), 900 + number])
        lab.run()
        hits[order] = lab.engine.metrics.prefix_cache_hits_total
        ends = [plan.items[0].request_id for plan in lab.executor.plans if plan.items]
        passed[order] = max(n - int(name[1:]) for n, name in enumerate(ends))
    assert hits["lpm"] > 2 * hits["fcfs"]
    assert passed["fcfs"] == 0
    assert passed["lpm"] <= 24  # nobody waits for ever


def test_nobody_is_passed_over_for_ever(kind):
    from minipaged.sched.order import PATIENCE

    lab = CacheLab(
        enable_prefix_caching=kind, block_size=4, num_blocks=16, max_num_seqs=1, order="lpm"
    )
    shared = list(range(1, 33))
    lab.hits("warm", [*shared, 999])
    lab.ask("stranger", range(500, 520))
    for number in range(40):
        lab.ask(f"r{number}", [*shared, 600 + number])
    lab.run()
    ends = [plan.items[0].request_id for plan in lab.executor.plans if plan.items]
    assert ends.index("stranger") - 1 == PATIENCE
