"""A token taken back or exchanged, when its blocks are cached, shared or on the host."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from minipaged.beam_scores import BeamSearchParams
from minipaged.components import Components
from minipaged.config import SamplingParams

KINDS = ("off", "hash", "radix")


def add(engine, name, prompt, max_tokens):
    engine.outputs[name] = []
    params = SamplingParams(max_tokens=max_tokens, ignore_eos=True)
    engine.engine.add_request(name, prompt, params, with_text=False)


def fork(engine, parent, name, max_tokens):
    engine.outputs[name] = []
    params = SamplingParams(max_tokens=max_tokens, ignore_eos=True)
    engine.engine.fork(parent, name, params, with_text=False)


def alone(lab, prompt, max_tokens):
    engine = lab(block_size=4, num_blocks=60)
    add(engine, "alone", prompt, max_tokens)
    engine.run()
    return engine.outputs["alone"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_token_that_is_no_more_is_found_in_no_cache(lab, kind):
    """Its block was published, then the token in it exchanged and the block published again."""
    engine = lab(block_size=4, num_blocks=6, enable_prefix_caching=kind)
    add(engine, "A", list(range(1, 7)), 9)
    request = engine.engine.requests["A"]
    while request.num_computed_tokens < 8:
        engine.step()
    old = [*request.token_ids[:8], 5]
    engine.engine.take_back_last_token("A")
    engine.engine.exchange_last_token("A", 777)
    engine.step()
    add(engine, "X", list(range(100, 111)), 1)  # takes the block that was published first
    engine.step()
    add(engine, "B", old, 4)
    engine.run()
    assert engine.outputs["B"] == alone(lab, old, 4)
    engine.assert_clean()


def test_a_block_that_is_written_once_more_is_no_copy_of_the_host(lab):
    """Q is out; P, which shared its last block, exchanges a token in it: Q may not share it."""
    order = ["Q", "U", "R3", "R2", "R", "P"]

    def victim(running, needy):
        return min(running, key=lambda request: order.index(request.request_id))

    sizes = {"block_size": 5, "num_blocks": 10, "max_num_batched_tokens": 3, "max_num_seqs": 8}
    parts = replace(Components(), victim=victim)
    engine = lab(components=parts, preemption="swap", num_host_blocks=30, **sizes)
    add(engine, "R", [900], 40)
    engine.step()
    add(engine, "P", list(range(1, 7)), 12)
    add(engine, "U", [800] * 16, 20)
    while "P" not in engine.engine.requests or engine.engine.requests["P"].num_computed_tokens < 10:
        engine.step()
    for parent, name, length in (("P", "Q", 8), ("R", "R2", 40), ("R", "R3", 40)):
        fork(engine, parent, name, length)
    known = list(engine.engine.requests["Q"].token_ids)
    while not engine.engine.requests["Q"].is_swapped:
        engine.step()
    engine.engine.take_back_last_token("P")
    engine.engine.exchange_last_token("P", 777)
    engine.engine.abort(["R", "R2", "R3", "U"])
    engine.run()
    assert engine.outputs["Q"] == alone(lab, known, 8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block_size", [1, 2, 4])
def test_several_tokens_taken_back_at_once(lab, kind, block_size):
    engine = lab(block_size=block_size, num_blocks=40, enable_prefix_caching=kind)
    add(engine, "A", list(range(1, 6)), 20)
    for _ in range(6):
        engine.step()
    fork(engine, "A", "B", 9)
    known = list(engine.engine.requests["A"].token_ids)
    taken = [engine.engine.take_back_last_token("A") for _ in range(4)]
    assert taken == known[:-5:-1]
    engine.engine.check()
    del engine.outputs["A"][-4:]
    engine.run()
    assert engine.outputs["A"] == alone(lab, list(range(1, 6)), 20)
    assert engine.outputs["B"] == alone(lab, known, 9)
    engine.assert_clean()


@pytest.mark.parametrize("back", [1, 3])
def test_tokens_taken_back_from_a_request_on_the_host(lab, back):
    engine = lab(block_size=1, num_blocks=20, preemption="swap", num_host_blocks=30)
    add(engine, "A", [1] * 6, 12)
    add(engine, "B", [2] * 6, 12)
    while not engine.engine.requests["B"].is_swapped:
        engine.step()
    for _ in range(back):
        engine.engine.take_back_last_token("B")
    engine.engine.check()
    del engine.outputs["B"][-back:]
    engine.run()
    assert engine.outputs["B"] == alone(lab, [2] * 6, 12)
    engine.assert_clean()


@pytest.mark.parametrize("seed", range(40))
def test_edits_at_random_change_nobody_elses_text(lab, seed):
    """Forks, edits and swaps under pressure; who is not edited writes what it writes alone."""
    rng = random.Random(seed)
    engine = lab(
        block_size=rng.choice((1, 2, 3)),
        num_blocks=rng.choice((24, 40)),
        max_num_batched_tokens=rng.choice((4, 16)),
        max_num_seqs=5,
        enable_prefix_caching=rng.choice(KINDS),
        preemption="swap",
        num_host_blocks=rng.choice((4, 60)),
    )
    prompts = {name: [ord(name)] * rng.randint(1, 6) for name in "ABC"}
    for name, prompt in prompts.items():
        add(engine, name, prompt, 10)
    for number in range(60):
        live = [r for r in engine.engine.requests.values() if r.num_output_tokens > 1]
        edited = [r for r in live if r.request_id.startswith("E")]
        if live and number % 4 == 0 and len(engine.engine.requests) < 8:
            fork(engine, rng.choice(live).request_id, f"E{number}", 8)
        for request in edited if rng.random() < 0.5 else ():
            for _ in range(rng.randint(1, min(2, request.num_output_tokens))):
                engine.engine.take_back_last_token(request.request_id)
            engine.engine.exchange_last_token(request.request_id, rng.randrange(900))
        engine.engine.check()
        if engine.engine.has_unfinished_requests():
            engine.step()
    engine.engine.abort([i for i in engine.engine.requests if i.startswith("E")])
    engine.run()
    for name, prompt in prompts.items():
        assert engine.outputs[name] == alone(lab, prompt, 10)
    engine.assert_clean()


def test_beams_that_the_gates_keep_apart_are_refused_at_once():
    from minipaged import LLM

    llm = LLM("tutor", block_size=4, max_num_seqs=6, num_blocks=88, low_water_blocks=60)
    with pytest.raises(ValueError, match="60 kept free"):
        llm.beam_search("What is preemption?", BeamSearchParams(beam_width=3, max_tokens=24))


def test_beams_wait_for_one_that_has_to_stay_out():
    from minipaged import LLM

    params = BeamSearchParams(beam_width=3, max_tokens=24)
    right = LLM("tutor", block_size=4).beam_search("What is preemption?", params)
    llm = LLM(
        "tutor",
        block_size=4,
        max_num_seqs=6,
        num_blocks=130,
        low_water_blocks=20,
        backoff_steps=4,
        max_num_batched_tokens=128,
    )
    other = SamplingParams(max_tokens=60, ignore_eos=True)
    llm.engine.add_request("other", "What is a slot?", other)
    found = llm.beam_search("What is preemption?", params)
    assert [beam.token_ids for beam in found[0]] == [beam.token_ids for beam in right[0]]
