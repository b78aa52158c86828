"""Swapping out and back: the host's blocks, what is shared on the way, and what cannot be moved."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minipaged.cache.invariants import InvariantError
from minipaged.cache.manager import KVManager
from minipaged.config import CacheConfig, EngineConfig, SamplingParams
from minipaged.exec.torch_exec import TorchExecutor
from minipaged.model.llama import Llama
from minipaged.model.llama_config import LlamaConfig
from minipaged.plan import BlockMove, StepPlan
from minipaged.request import Request, RequestStatus


def swapping(lab, **options):
    return lab(block_size=4, preemption="swap", **{"num_host_blocks": 8, **options})


def until_swapped(engine, request_id):
    while not engine.engine.requests[request_id].is_swapped:
        engine.step()


def alone(lab, request_id, prompt, max_tokens):
    engine = lab(block_size=4, num_blocks=40)
    engine.add(request_id, prompt, max_tokens)
    engine.run()
    return engine.outputs[request_id]


def test_case_7_abort_in_any_state(lab):
    engine = swapping(lab, num_blocks=8, num_host_blocks=4, max_num_seqs=2)
    engine.add("R1", 23, 9)
    engine.add("R3", 6, 20)
    engine.add("R2", 5, 9)
    until_swapped(engine, "R3")
    requests, swap = engine.engine.requests, engine.engine.manager.swap
    assert requests["R1"].status is RequestStatus.RUNNING
    assert requests["R2"].status is RequestStatus.WAITING
    assert len(swap.tables["R3"]) == 2 and swap.pool.num_free == 2
    engine.engine.abort(["R1", "R2", "R3", "R1", "nobody"])
    engine.assert_clean()
    assert engine.pool.num_free == 8 and swap.pool.num_free == 4
    assert not swap.tables


def test_a_swapped_request_goes_on_where_it_was(lab):
    engine = swapping(lab, num_blocks=6)
    engine.add("A", 8, 12)
    engine.add("B", 8, 12)
    until_swapped(engine, "B")
    request = engine.engine.requests["B"]
    computed, known = request.num_computed_tokens, list(request.token_ids)
    assert computed == len(known) - 1
    moves = engine.executor.plans[-1].swap_out
    assert len(moves) == engine.engine.manager.blocks_for(computed)
    engine.run()
    back = next(p for p in engine.executor.plans if p.swap_in)
    (item,) = [i for i in back.items if i.request_id == "B"]
    assert (item.start_position, item.first_block) == (computed, 0)
    assert len(back.swap_in) == len(moves)
    assert engine.engine.metrics.num_recomputed_tokens_total == 0
    assert engine.engine.metrics.num_swapped_out_blocks_total == len(moves)
    for name in "AB":
        assert engine.outputs[name] == alone(lab, name, 8, 12)
    engine.assert_clean()


def test_a_full_host_means_that_this_victim_recomputes(lab):
    engine = swapping(lab, num_blocks=6, num_host_blocks=2)
    engine.add("A", 8, 12)
    engine.add("B", 8, 12)
    engine.run()
    metrics = engine.engine.metrics
    assert metrics.num_preemptions_total == 1 and metrics.num_swapped_out_blocks_total == 0
    assert metrics.num_recomputed_tokens_total == 12
    assert engine.outputs["B"] == alone(lab, "B", 8, 12)


@pytest.mark.parametrize(("limit", "most"), [(0, 0), (1, 1), (None, 2)])
def test_max_preemptions_counts_the_swaps_of_each_request(lab, limit, most):
    engine = swapping(lab, num_blocks=5, num_host_blocks=20, max_preemptions=limit)
    requests = []
    for length, name in enumerate("ABC", 3):
        engine.add(name, length, 12)
        requests.append(engine.engine.requests[name])
    engine.run()
    assert max(request.num_swaps for request in requests) == most
    assert max(request.num_preemptions for request in requests) > 1
    for length, name in enumerate("ABC", 3):
        assert engine.outputs[name] == alone(lab, name, length, 12)


def test_one_request_that_used_up_its_swaps_decides_nothing_for_another(lab):
    """C14: counted on the scheduler, one victim's history would decide another's fate."""
    engine = swapping(lab, num_blocks=5, num_host_blocks=20, max_preemptions=1)
    for length, name in enumerate("ABC", 3):
        engine.add(name, length, 12)
    ways = {}
    while engine.engine.has_unfinished_requests():
        engine.step()
        for victim in engine.engine.scheduler.preempted:
            ways.setdefault(victim.request_id, []).append(victim.is_swapped)
    assert len(ways) > 1 and max(map(len, ways.values())) > 1
    for name, swapped in ways.items():
        assert swapped[0], f"{name} was not swapped the first time"
        assert not any(swapped[1:])


def test_shared_blocks_move_once_and_stay_shared(lab):
    """Two branches of one prompt, both out: the prompt's full blocks are on the host once."""
    engine = swapping(lab, num_blocks=9, num_host_blocks=20, max_num_seqs=3)
    engine.add("A", 4, 24)
    engine.step()
    engine.add("P", 9, 20)
    engine.step()
    engine.outputs["Q"] = []
    engine.engine.fork("P", "Q", SamplingParams(max_tokens=19, ignore_eos=True))
    swap = engine.engine.manager.swap
    while len(swap.tables) < 2:
        engine.step()
    p, q = swap.tables["P"], swap.tables["Q"]
    assert p[:2] == q[:2] and [swap.pool.refcount(host) for host in p[:2]] == [2, 2]
    moved = sum(len(plan.swap_out) for plan in engine.executor.plans)
    assert moved == len(set(p) | set(q))
    while swap.tables:
        engine.step()
    brought = [move.source for plan in engine.executor.plans for move in plan.swap_in]
    assert brought.count(p[0]) == brought.count(p[1]) == 1
    engine.run()
    assert len(engine.outputs["P"]) == 20 and engine.outputs["P"][1:] == engine.outputs["Q"]
    engine.assert_clean()


def test_a_block_that_a_running_sequence_holds_is_copied_not_freed(lab):
    engine = swapping(lab, num_blocks=5, max_num_seqs=2)
    engine.add("P", 8, 12)
    engine.step()
    engine.outputs["Q"] = []
    engine.engine.fork("P", "Q", SamplingParams(max_tokens=11, ignore_eos=True))
    until_swapped(engine, "Q")
    table = engine.engine.manager.tables["P"].block_ids
    assert [engine.pool.refcount(block) for block in table[:2]] == [1, 1]
    assert engine.engine.manager.swap.num_shared(engine.engine.requests["Q"]) == 2
    engine.run()
    back = next(plan for plan in engine.executor.plans if plan.swap_in)
    out = next(plan for plan in engine.executor.plans if plan.swap_out)
    assert {m.source for m in out.swap_out} >= set(table[:2])
    assert len(back.swap_in) <= len(out.swap_out)
    assert engine.outputs["P"][1:] == engine.outputs["Q"]
    engine.assert_clean()


def test_a_plan_that_fails_takes_its_swaps_back(lab):
    engine = swapping(lab, num_blocks=6)
    engine.add("A", 8, 12)
    engine.add("B", 8, 12)

    def fail(plan):
        if plan.swap_out:
            engine.executor.during = None
            raise RuntimeError("the device is gone")

    engine.executor.during = fail
    with pytest.raises(RuntimeError, match="device is gone"):
        engine.run()
    engine.engine.check()
    assert not engine.engine.manager.swap.tables
    assert all(r.num_computed_tokens == 0 for r in engine.engine.requests.values())
    assert all(r.num_swaps == 0 for r in engine.engine.requests.values())
    assert not any(plan.swap_out for plan in engine.executor.plans[:-1])
    metrics = engine.engine.metrics
    assert metrics.num_swapped_out_blocks_total == 0 and metrics.num_preemptions_total == 2
    engine.run()
    assert metrics.num_swapped_out_blocks_total == metrics.num_swapped_in_blocks_total
    for name in "AB":
        assert engine.outputs[name] == alone(lab, name, 8, 12)
    engine.assert_clean()


def test_swap_without_host_blocks_is_refused():
    for way in ("swap", "auto"):
        with pytest.raises(ValueError, match=f"{way}, but num_host_blocks is 0: give host blocks"):
            EngineConfig.of(preemption=way)


def test_check_sees_what_is_wrong_on_the_host(lab):
    engine = swapping(lab, num_blocks=6)
    engine.add("A", 8, 12)
    engine.add("B", 8, 12)
    until_swapped(engine, "B")
    swap = engine.engine.manager.swap
    swap.pool.blocks[swap.tables["B"][0]].refcount += 1
    with pytest.raises(InvariantError, match="on the host, block 0 has refcount 2 but 1 holders"):
        engine.engine.manager.check()


@pytest.fixture(scope="module")
def torch_executor():
    config = LlamaConfig(
        vocab_size=32,
        hidden_size=8,
        intermediate_size=8,
        num_layers=2,
        num_heads=2,
        num_kv_heads=1,
        head_dim=4,
    )
    cache = CacheConfig(block_size=2, num_blocks=4, num_host_blocks=3)
    return TorchExecutor(Llama(config), cache)


def test_case_38_order_within_one_step(torch_executor):
    """{out: g3 -> c0, in: c1 -> g3} with g3 = 3.0, c1 = 1.0: afterwards c0 = 3.0, g3 = 1.0."""
    run = torch_executor
    for pool, host in zip((*run.k_pools, *run.v_pools), run._host_pools, strict=True):
        pool.zero_(), host.zero_()
        pool[3], host[1] = 3.0, 1.0
    plan = StepPlan(0, swap_out=[BlockMove(3, 0)], swap_in=[BlockMove(1, 3)])
    plan.copies = [BlockMove(3, 2)]  # copies come after both
    run.execute(plan)
    for pool, host in zip((*run.k_pools, *run.v_pools), run._host_pools, strict=True):
        assert (host[0] == 3.0).all() and (pool[3] == 1.0).all() and (pool[2] == 1.0).all()
        assert torch.equal(pool[:2], torch.zeros_like(pool[:2]))


class Model:
    """A manager with a host, next to plain dictionaries that say what each request has computed.

    Contents are tracked as an executor would: the moves are carried out on two lists of blocks.
    """

    def __init__(self, num_blocks, num_hosts):
        self.manager = KVManager(num_blocks, 2, num_host_blocks=num_hosts)
        self.device, self.host = [None] * num_blocks, [None] * num_hosts
        self.requests, self.out, self.count = {}, set(), 0
        self.planned = {}  # request -> tokens that it computes in the step being planned

    def add(self, tokens):
        request = Request(f"r{self.count}", [self.count] * tokens, SamplingParams())
        self.count += 1
        if self.manager.grow(request, tokens) is not None:
            self.requests[request.request_id] = request
            self.planned[request] = tokens

    def fork(self, parent):
        child = Request(f"r{self.count}", parent.token_ids, SamplingParams())
        self.count += 1
        self.manager.fork(parent, child)
        self.requests[child.request_id] = child

    def write(self, request):
        """Plan the next token, if there is room; a copy that it needs is made in run."""
        if request not in self.planned and self.manager.grow(request, 1) is not None:
            request.token_ids.append(1000 + self.count)
            self.count += 1
            self.planned[request] = 1

    def run(self):
        """The step: moves out and in, copies, and only then what was to be computed."""
        self._carry_out()
        for request, tokens in self.planned.items():
            table = self.manager.tables[request.request_id].block_ids
            start = request.num_computed_tokens
            for position in range(start, start + tokens):
                held = dict(self.device[table[position // 2]] or {})
                held[position % 2] = request.token_ids[position]
                self.device[table[position // 2]] = held
            request.num_computed_tokens += tokens
            request.num_inflight_tokens = 0
        self.planned = {}

    def move_out(self, request):
        """A victim: what it was to compute in this step is not computed."""
        if request.num_computed_tokens and self.manager.swap.move_out(request):
            self.out.add(request.request_id)
            if self.planned.pop(request, 0):
                del request.token_ids[request.num_computed_tokens :]

    def move_back(self, request):
        swap, manager = self.manager.swap, self.manager
        needed = len(swap.tables[request.request_id]) - swap.num_shared(request)
        if needed <= manager.pool.num_free:
            swap.move_back(request)
            self.out.discard(request.request_id)

    def end(self, request):
        self.manager.release(request)
        self.out.discard(request.request_id)
        del self.requests[request.request_id]

    def _carry_out(self):
        plan = StepPlan(0)
        self.manager.take_moves(plan)
        for move in plan.swap_out:
            self.host[move.target] = self.device[move.source]
        for move in plan.swap_in:
            self.device[move.target] = self.host[move.source]
        for move in plan.copies:
            self.device[move.target] = self.device[move.source]

    def verify(self):
        self.manager.check()
        if self.planned:
            return
        self._carry_out()
        for request in self.requests.values():
            is_out = request.request_id in self.out
            table, blocks = (
                (self.manager.swap.tables[request.request_id], self.host)
                if is_out
                else (self.manager.tables[request.request_id].block_ids, self.device)
            )
            for position in range(request.num_computed_tokens):
                found = blocks[table[position // 2]][position % 2]
                assert found == request.token_ids[position], (request, position)


@settings(max_examples=120)
@given(st.data())
def test_whatever_is_moved_is_what_was_computed(data):
    model = Model(data.draw(st.integers(2, 9)), data.draw(st.integers(1, 7)))
    for _ in range(data.draw(st.integers(1, 40))):
        live = sorted(model.requests)
        here = [i for i in live if i not in model.out]
        choices = ["add", "run"] + ["fork", "write", "write", "out"] * bool(here)
        choices += ["back"] * bool(model.out) + ["end"] * bool(live)
        act = data.draw(st.sampled_from(choices))
        if act in ("fork", "back", "end", "run"):  # these come between two steps
            model.run()
        if act == "run":
            pass
        elif act == "add":
            model.add(data.draw(st.integers(1, 5)))
        elif act == "end":
            model.end(model.requests[data.draw(st.sampled_from(live))])
        elif act == "back":
            model.move_back(model.requests[data.draw(st.sampled_from(sorted(model.out)))])
        else:
            request = model.requests[data.draw(st.sampled_from(here))]
            {"fork": model.fork, "write": model.write, "out": model.move_out}[act](request)
        model.verify()
