"""Runs for pictures: the real engine, no model, the whole record."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from minipaged import simulate as module
from minipaged.cache.pool import BlockPool
from minipaged.components import Components
from minipaged.config import SamplingParams
from minipaged.simulate import simulate
from minipaged.workload import Arrival, SyntheticWorkload


def outputs(trace):
    """Tokens sampled for each request, over the whole trace."""
    found = {}
    for record in trace.steps:
        for work in record.work:
            found.setdefault(work.request_id, []).extend(work.sampled)
    return found


def test_pairs_run_to_their_full_length():
    trace = simulate([(9, 5), (4, 1)], block_size=4, num_blocks=8)
    assert {name: len(tokens) for name, tokens in outputs(trace).items()} == {"A": 5, "B": 1}
    first = trace.steps[0]
    assert first.tables == {"A": [0, 1, 2], "B": [3]}
    assert [(w.request_id, w.num_tokens) for w in first.work] == [("A", 9), ("B", 4)]
    assert len(trace.steps) == 5


def test_pairs_share_no_tokens():
    arrivals = module._arrivals([(9, 5), (4, 1), (3, 3)])
    tokens = [token for arrival in arrivals for token in arrival.prompt_token_ids]
    assert len(set(tokens)) == len(tokens) == 16


def test_it_takes_what_a_workload_gives():
    workload = SyntheticWorkload(requests=20, prompt_len=(1, 30), arrival_rate=0.5, seed=3)
    trace = simulate(workload.arrivals(), block_size=4, max_num_batched_tokens=16)
    wanted = {a.request_id: a.params.max_tokens for a in workload.arrivals()}
    assert {name: len(tokens) for name, tokens in outputs(trace).items()} == wanted
    assert max(record.num_tokens for record in trace.steps) <= 16
    assert trace == simulate(workload.arrivals(), block_size=4, max_num_batched_tokens=16)
    times = [record.time for record in trace.steps]
    assert times == sorted(times) and times[-1] < len(times)  # the cost model's, not ours


def test_memory_is_room_for_all_unless_it_is_given():
    pairs = [(10, 10), (9, 10), (3, 1)]
    roomy = simulate(pairs, block_size=4)
    assert roomy.num_blocks == 5 + 5 + 1
    tight = simulate(pairs, block_size=4, num_blocks=6)
    kinds = [{e.kind for s in trace.steps for e in s.events} for trace in (roomy, tight)]
    assert "preempted" not in kinds[0] and "preempted" in kinds[1]
    assert outputs(roomy) == outputs(tight)  # the ledger: the schedule changes no token


def test_the_longest_request_sets_max_model_len_unless_it_is_given():
    assert len(outputs(simulate([(10, 90), (1, 1)]))["A"]) == 90
    assert len(outputs(simulate([(10, 90), (1, 1)], max_model_len=50))["A"]) == 40


def test_own_parts_take_the_place_of_the_reference():
    made = []

    class Mine(BlockPool):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self)

    simulate([(9, 5)], components=replace(Components(), block_pool=Mine), num_blocks=8)
    assert len(made) == 1 and made[0].num_free == 8


@pytest.mark.parametrize(
    ("arrivals", "config", "message"),
    [
        ([], {}, "arrivals is empty"),
        ([(3, 2), 7], {}, r"arrivals\[1\] is 7: give an Arrival or a pair"),
        ([(3, 0)], {}, r"output_len of arrivals\[0\] is 0"),
        ([(True, 1)], {}, r"prompt_len of arrivals\[0\] is True"),
        ([(30, 2)], {"num_blocks": 1}, "needs 30 slots, but the whole pool has 16"),
        ([(3, 2)], {"blocksize": 4}, "did you mean 'block_size'"),
    ],
)
def test_bad_input_is_named(arrivals, config, message):
    with pytest.raises(ValueError, match=message):
        simulate(arrivals, **config)


def test_a_run_without_end_is_given_up(monkeypatch):
    monkeypatch.setattr(module, "MAX_STEPS", 10)
    with pytest.raises(RuntimeError, match="1 requests are unfinished after 10 steps"):
        simulate([(1, 11)])
    assert len(simulate([(1, 10)]).steps) == 10


def test_names_go_on_when_the_letters_are_used_up():
    names = [a.request_id for a in module._arrivals([(1, 1)] * 130)]
    assert names[:3] == ["A", "B", "C"] and names[62] == "A1" and names[124] == "A2"
    assert len(set(names)) == 130


def test_arrivals_may_name_themselves():
    arrival = Arrival("mine", [5, 6], SamplingParams(max_tokens=2), 4)
    assert set(outputs(simulate([arrival, (2, 1)]))) == {"mine", "B"}


def test_no_tensor_library_is_loaded():
    code = (
        "import sys, minipaged.viz.plots\n"
        "from minipaged.simulate import simulate\n"
        "from minipaged.viz.figures import show_step\n"
        "from minipaged.viz.widgets import step_through\n"
        "step_through(simulate([(3, 2)]))._repr_mimebundle_(); show_step(simulate([(3, 2)]), 0)\n"
        "print({'torch', 'numpy', 'matplotlib', 'ipywidgets', 'IPython'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
