"""Several samples of one prompt, and forks of live requests, over the ledger: shared until written.

Cases 8, 10, 12 and 13, and properties: what a sample writes never depends on sharing.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import pytest
from conftest import Lab
from hypothesis import given, settings
from hypothesis import strategies as st

from minipaged.components import Components
from minipaged.config import SamplingParams


class ForkLab(Lab):
    """A Lab that keeps the outputs of every sample: samples["a", 1]."""

    def __init__(self, **options):
        super().__init__(**options)
        self.samples = defaultdict(list)
        self.ends = {}

    def step(self):
        outputs = self.engine.step()
        self.engine.check()
        for output in outputs:
            key = output.request_id, output.sample_index
            self.samples[key] += output.new_token_ids
            if output.finish_reason:
                self.ends[key] = output.finish_reason
        return outputs

    def ask(self, request_id, prompt, max_tokens=6, **params):
        params = SamplingParams(max_tokens=max_tokens, ignore_eos=True, **params)
        self.engine.add_request(request_id, list(prompt), params)

    @property
    def copies(self):
        return self.engine.metrics.num_copied_blocks_total


def table(lab, sequence_id):
    return lab.engine.manager.tables[sequence_id].block_ids


def alone(prompt, n=1, max_tokens=6, **params):
    """The samples of one request with all memory for itself, in blocks of one token each."""
    lab = ForkLab(block_size=1, num_blocks=4000, max_num_seqs=64)
    lab.ask("a", prompt, max_tokens, n=n, **params)
    lab.run()
    lab.assert_clean()
    return {index: tokens for (_, index), tokens in lab.samples.items()}


@pytest.mark.parametrize(
    ("prompt", "copies", "blocks"), [(6, 1, 3), (8, 0, 4)], ids=["inside a block", "at a border"]
)
def test_case_12_shared_partial_tail(prompt, copies, blocks):
    lab = ForkLab(block_size=4, num_blocks=8, max_num_seqs=4)
    lab.ask("a", range(1, prompt + 1), n=2, temperature=1.0, seed=3)
    lab.step()  # the prompt, and the first token of both
    assert table(lab, "a") == table(lab, "a~1")
    assert lab.pool.refcount(table(lab, "a")[0]) == 2
    lab.step()  # both write position `prompt`
    assert lab.copies == copies
    assert lab.pool.num_blocks - lab.pool.num_free == blocks
    lab.run()
    lab.assert_clean()
    assert lab.samples["a", 0] != lab.samples["a", 1]


def test_case_12_the_last_holder_writes_in_place():
    lab = ForkLab(block_size=4, num_blocks=8, max_num_seqs=4)
    lab.ask("a", range(1, 7))
    lab.step()
    lab.engine.fork("a", "b")
    lab.engine.abort("a")
    lab.run()
    assert lab.copies == 0
    lab.assert_clean()


def test_case_10_no_double_free_after_a_copy():
    lab = ForkLab(block_size=4, num_blocks=8, max_num_seqs=4)
    lab.ask("a", range(1, 7), max_tokens=2)
    lab.step()
    lab.engine.fork("a", "b", SamplingParams(max_tokens=4, ignore_eos=True))
    lab.step()
    assert lab.copies == 1
    for request_id in ("b", "a"):
        lab.engine.abort(request_id)
        lab.engine.check()
    lab.assert_clean()


def test_case_13_one_seed_gives_different_samples_and_the_same_again():
    prompt = list(range(1, 6))
    first, again = (alone(prompt, n=3, temperature=1.0, seed=7, max_tokens=9) for _ in range(2))
    assert first == again
    assert len({tuple(tokens) for tokens in first.values()}) == 3
    lab = ForkLab(block_size=4, num_blocks=40, max_num_seqs=8)
    stop = first[0][2]
    lab.ask("a", prompt, 9, n=3, temperature=1.0, seed=7, stop_token_ids=(stop,))
    lab.run()
    assert lab.samples["a", 0] == first[0][:3] and lab.ends["a", 0] == "stop"
    assert len(lab.samples["a", 1]) > 3 or stop in first[1][:3]


def test_case_8_an_abort_during_a_copy_frees_once():
    lab = ForkLab(block_size=4, num_blocks=6, max_num_seqs=4)
    lab.ask("a", range(1, 7), n=2, temperature=1.0, seed=1)
    lab.step()

    def abort(plan):
        assert plan.copies
        source = plan.copies[0].source
        lab.engine.abort("a")
        assert lab.pool.refcount(source) > 0  # nobody can be given it before the step is over

    lab.executor.during = abort
    lab.step()
    lab.assert_clean()


def test_greedy_samples_are_all_the_same_and_share_all_but_what_they_write():
    lab = ForkLab(block_size=4, num_blocks=64, max_num_seqs=8)
    lab.ask("a", range(1, 30), n=4, max_tokens=5)
    lab.run()
    assert len({tuple(tokens) for tokens in lab.samples.values()}) == 1
    # 7 full blocks of the prompt are held once instead of four times
    assert lab.engine.metrics.peak_saved_blocks >= 21
    assert lab.engine.metrics.prompt_tokens_total == 29


def test_too_many_samples_are_refused_and_places_are_kept_for_those_to_come():
    lab = ForkLab(block_size=4, num_blocks=40, max_num_seqs=4, max_num_batched_tokens=4)
    with pytest.raises(ValueError, match="n is 5, but max_num_seqs is 4"):
        lab.ask("a", [1, 2], n=5)
    lab.ask("a", range(1, 10), n=3)  # three steps of prompt
    for name in "bc":
        lab.ask(name, [1, 2, 3])
    lab.step()
    assert [r.request_id for r in lab.engine.scheduler.waiting] == ["b", "c"]
    lab.run()
    lab.assert_clean()


def test_an_id_that_a_sample_will_use_is_taken():
    lab = ForkLab(block_size=4, num_blocks=40, max_num_seqs=4)
    lab.ask("a", [1, 2], n=2)
    with pytest.raises(ValueError, match="'a~1' is live already"):
        lab.ask("a~1", [1])
    lab.run()
    lab.ask("a~1", [1])
    with pytest.raises(ValueError, match="'a~1' is live already"):
        lab.ask("a", [1, 2], n=2)
    lab.run()
    lab.assert_clean()


def test_an_abort_ends_all_samples_whatever_they_are_doing():
    lab = ForkLab(block_size=4, num_blocks=40, max_num_seqs=4)
    lab.ask("a", range(9), n=3)
    lab.engine.abort("a")  # before any branched off
    lab.assert_clean()
    lab.ask("a", range(9), n=3)
    lab.step()
    assert set(lab.engine.requests) == {"a", "a~1", "a~2"}
    lab.engine.abort("a")
    lab.assert_clean()


def test_a_first_token_that_ends_a_sample_ends_no_other():
    first = alone(range(5), n=3, temperature=1.0, seed=2)
    lab = ForkLab(block_size=4, num_blocks=40, max_num_seqs=4)
    lab.ask("a", range(5), n=3, temperature=1.0, seed=2, stop_token_ids=(first[0][0],))
    lab.run()
    assert lab.samples["a", 0] == first[0][:1]
    assert len(lab.samples["a", 1]) == 6 or first[0][0] in first[1]
    lab.assert_clean()


# forks of live requests


def test_a_fork_goes_on_as_its_parent_does_and_shares_its_blocks():
    lab = ForkLab(block_size=4, num_blocks=40, max_num_seqs=4)
    lab.ask("a", range(1, 11), max_tokens=9)
    for _ in range(3):
        lab.step()
    so_far = list(lab.samples["a", 0])
    lab.engine.fork("a", "b", SamplingParams(max_tokens=6, ignore_eos=True))
    lab.engine.check()
    assert table(lab, "a") == table(lab, "b")
    lab.run()
    assert so_far + lab.samples["b", 0] == lab.samples["a", 0]
    lab.assert_clean()


@pytest.mark.parametrize("state", ["waiting", "full", "prefilling"])
def test_a_fork_of_a_request_in_any_state(state):
    lab = ForkLab(
        block_size=4,
        num_blocks=40,
        max_num_seqs=1 if state == "full" else 4,
        max_num_batched_tokens=4,
    )
    lab.ask("a", range(1, 11), max_tokens=4)
    if state != "waiting":
        lab.step()
    lab.engine.fork("a", "b")
    assert ("b" in lab.engine.manager.tables) == (state == "prefilling")
    lab.run()
    assert lab.samples["a", 0] == lab.samples["b", 0] == alone(range(1, 11), max_tokens=4)[0]
    lab.assert_clean()


@pytest.mark.parametrize(
    ("parent", "child", "words"),
    [("x", "b", "no live request"), ("a", "a", "'a' is live already"), ("a", 3, "is no text")],
)
def test_a_fork_that_cannot_be_is_refused_and_changes_nothing(parent, child, words):
    lab = ForkLab(block_size=4, num_blocks=40)
    lab.ask("a", range(1, 11))
    lab.step()
    with pytest.raises(ValueError, match=words):
        lab.engine.fork(parent, child)
    lab.run()
    assert lab.samples["a", 0] == alone(range(1, 11))[0]
    lab.assert_clean()


def test_a_fork_during_a_step_is_refused():
    lab = ForkLab(block_size=4, num_blocks=40)
    lab.ask("a", range(1, 11))

    def fork(plan):
        with pytest.raises(ValueError, match="a step is under way"):
            lab.engine.fork("a", "b")

    lab.executor.during = fork
    lab.run()


@settings(max_examples=60)
@given(
    st.integers(1, 5),
    st.integers(8, 40),
    st.integers(1, 12),
    st.lists(st.tuples(st.integers(1, 14), st.integers(1, 4), st.integers(1, 9)), max_size=5),
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 4)), max_size=4),
)
def test_what_is_written_never_depends_on_sharing(size, slots, budget, asked, forks):
    lab = ForkLab(
        block_size=size,
        num_blocks=-(-slots // size),
        max_num_seqs=6,
        max_num_batched_tokens=budget,
    )
    accepted = {}
    for number, (length, n, outputs) in enumerate(asked):
        prompt = [number * 7 + k for k in range(length)]
        if length <= lab.engine.manager.num_slots:
            lab.ask(f"r{number}", prompt, outputs, n=n, temperature=1.0, seed=number)
            accepted[f"r{number}"] = (prompt, n, outputs, number)
    steps, born = 0, {}
    while lab.engine.has_unfinished_requests():
        for when, number in forks:
            parent = lab.engine.requests.get(f"r{number}")
            new_id = f"f{when}.{number}"
            fits = parent and parent.num_tokens <= lab.engine.manager.num_slots
            if when == steps and fits and new_id not in lab.engine.requests:
                params = SamplingParams(max_tokens=3, ignore_eos=True, temperature=1.0, seed=99)
                born[new_id] = list(parent.token_ids)
                lab.engine.fork(f"r{number}", new_id, params)
        lab.step()
        steps += 1
        assert steps < 2000
    lab.assert_clean()
    room = lab.engine.manager.num_slots + 1
    for name, (prompt, n, outputs, seed) in accepted.items():
        expected = alone(prompt, n, min(outputs, room - len(prompt)), temperature=1.0, seed=seed)
        assert {k: lab.samples[name, k] for k in range(n)} == expected
    for name, prompt in born.items():
        expected = alone(prompt, 1, min(3, room - len(prompt)), temperature=1.0, seed=99)
        assert lab.samples[name, 0] == expected[0]


class PlainTable:
    """A block table as lesson 03 builds it: it can neither fork nor replace an entry."""

    def __init__(self, block_size):
        self.block_size, self.block_ids = block_size, []

    def append_blocks(self, block_ids):
        self.block_ids += block_ids

    def slot(self, position):
        return self.block_ids[position // self.block_size] * self.block_size + (
            position % self.block_size
        )

    def release(self):
        block_ids, self.block_ids = self.block_ids, []
        return block_ids


def test_a_table_that_cannot_fork_is_forked_all_the_same():
    parts = replace(Components(), block_table=PlainTable)
    lab = ForkLab(components=parts, block_size=4, num_blocks=40, max_num_seqs=4)
    lab.ask("a", range(1, 7), n=3, temperature=1.0, seed=5)
    lab.run()
    assert lab.copies == 2
    assert dict(enumerate(lab.samples["a", k] for k in range(3))) == alone(
        range(1, 7), n=3, temperature=1.0, seed=5
    )
    lab.assert_clean()


def test_a_table_that_seems_empty_is_not_opened_again():
    """A learner's `__len__` may be wrong; that must not cost the table and its blocks."""

    class SeemsEmpty(PlainTable):
        def __len__(self):
            return 0

    lab = ForkLab(
        components=replace(Components(), block_table=SeemsEmpty), block_size=4, num_blocks=8
    )
    lab.ask("a", range(1, 7), max_tokens=9)
    lab.run()
    assert lab.samples["a", 0] == alone(range(1, 7), max_tokens=9)[0]
    lab.assert_clean()
