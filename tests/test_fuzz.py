"""Random workloads stay clean, and the fuzzer notices planted faults."""

from __future__ import annotations

import pytest

from minipaged import fuzz as fuzzing
from minipaged.cache.hash_prefix import HashPrefixCache
from minipaged.cache.manager import KVManager
from minipaged.cache.pool import BlockPool
from minipaged.cache.prefix import PrefixIndex
from minipaged.cache.table import BlockTable
from minipaged.exec.sim_exec import SimExecutor
from minipaged.fuzz import FuzzFailure, fuzz, main
from minipaged.plan import SampleSpec
from minipaged.sched.scheduler import Scheduler


def test_300_workloads():
    outcomes = list(fuzz(300, seed=0))
    assert len(outcomes) == 300
    assert sum(o.preemptions for o in outcomes) > 30
    assert sum(len(o.refused) for o in outcomes) > 100
    assert sum(r == "stop" for o in outcomes for r in o.reasons.values()) > 100
    assert sum(o.hits for o in outcomes) > 500
    assert sum(o.swaps for o in outcomes) > 100
    assert sum(o.copies for o in outcomes) > 50
    assert sum(o.forks for o in outcomes) > 30


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_10_000_workloads(seed):
    assert len(list(fuzz(1000, seed=seed))) == 1000


def test_the_command_line(capsys):
    assert main(["--workloads", "3", "--seed", "5"]) == 0
    assert capsys.readouterr().out.startswith("3 workloads clean")


def reorder(monkeypatch):
    """A table that hands out its blocks in another order than it wrote them."""
    right = BlockTable.append_blocks

    def wrong(self, block_ids):
        right(self, block_ids)
        if len(self.block_ids) == 4:
            self.block_ids.reverse()

    monkeypatch.setattr(BlockTable, "append_blocks", wrong)


def leak_on_release(monkeypatch):
    right = BlockPool.free
    monkeypatch.setattr(BlockPool, "free", lambda self, ids: right(self, ids[:-1]))


def forget_to_reset_computed(monkeypatch):
    right = KVManager.release

    def wrong(self, request):
        computed = request.num_computed_tokens
        right(self, request)
        if len(request.token_ids) > computed + 1:
            request.num_computed_tokens = min(computed, 1)

    monkeypatch.setattr(KVManager, "release", wrong)


def take_outputs_for_prompt_after_preemption(monkeypatch):
    right = Scheduler._preempt

    def wrong(self, victim, may_swap=True):
        right(self, victim, may_swap)
        victim.num_prompt_tokens = len(victim.token_ids)

    monkeypatch.setattr(Scheduler, "_preempt", wrong)


def sample_every_chunk(monkeypatch):
    from minipaged.sched import scheduler

    right = scheduler.make_item

    def wrong(request, num_new, *grown):
        item = right(request, num_new, *grown)
        if item.sample is not None or request.num_output_tokens:
            return item
        spec = SampleSpec(request.params, request.seed, 0, 0, 1, None)
        return item._replace(sample=spec)

    monkeypatch.setattr(scheduler, "make_item", wrong)


def write_without_a_copy(monkeypatch):
    monkeypatch.setattr(KVManager, "_tail_to_copy", lambda self, request: None)
    monkeypatch.setattr(KVManager, "check", lambda self: None)  # by the output alone


def copy_after_the_writes(monkeypatch):
    right = SimExecutor._move

    def wrong(self, source, target, moves):
        if source is not target:
            right(self, source, target, moves)

    monkeypatch.setattr(SimExecutor, "_move", wrong)


def never_forget(monkeypatch):
    monkeypatch.setattr(PrefixIndex, "forget", lambda self, block_ids: None)
    monkeypatch.setattr(KVManager, "check", lambda self: None)


def ignore_the_parent(monkeypatch):
    """The hash of a block is that of its own tokens alone."""
    right = HashPrefixCache.extend_links

    def extend_links(self, links, token_ids, num_full, key):
        while len(links) < num_full:
            own = []  # every block is hashed as if it were the first
            start = len(links) * self.block_size
            right(self, own, token_ids[start : start + self.block_size], 1, key)
            links += own

    monkeypatch.setattr(HashPrefixCache, "extend_links", extend_links)


FAULTS = [
    write_without_a_copy,
    copy_after_the_writes,
    never_forget,
    ignore_the_parent,
    reorder,
    leak_on_release,
    forget_to_reset_computed,
    take_outputs_for_prompt_after_preemption,
    sample_every_chunk,
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.__name__)
def test_the_fuzzer_finds_a_planted_fault(fault, monkeypatch, capsys):
    fault(monkeypatch)
    again = "run it again: python -m minipaged.fuzz --seed 0 --only"
    with pytest.raises(FuzzFailure, match=again) as found:
        list(fuzz(300, seed=0))
    # a fault that does not even run proves nothing
    assert not isinstance(found.value.__cause__, TypeError | AttributeError | NameError)
    assert main(["--workloads", "300"]) == 1
    assert "run it again" in capsys.readouterr().err


def test_a_workload_is_the_same_when_run_again():
    first = fuzzing.draw_workload(fuzzing.random.Random("0/17"))
    second = fuzzing.draw_workload(fuzzing.random.Random("0/17"))
    assert first == second
