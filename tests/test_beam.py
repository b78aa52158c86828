"""Beam search over the tutor: equal to a search over full forward passes without a cache."""

from __future__ import annotations

import itertools

import pytest
import torch
from beam_reference import search

from minipaged import LLM, BeamSearchParams, SamplingParams
from minipaged.llm import TUTOR
from minipaged.model.loader import load_llama
from minipaged.model.tutor.verify import dense_causal

QUESTIONS = ["What is MQA?", "What is a block table?", "Tell me a joke.", "什么是写时复制？"]
END = 257


@pytest.fixture(scope="module")
def dense():
    """Odds of a dense forward pass over whole sequences of one length, without any cache."""
    model = load_llama(TUTOR, torch.float32).eval()
    known = {}

    def odds(sequences):
        new = [one for one in sequences if tuple(one) not in known]
        if new:
            ids = torch.tensor(new)
            positions = torch.arange(ids.shape[1]).repeat(len(ids))
            with torch.inference_mode():
                hidden = model(ids.flatten(), positions, dense_causal(len(ids)))
                last = hidden.view(*ids.shape, -1)[:, -1]
                rows = model.logits(last).log_softmax(-1).tolist()
            known.update(zip(map(tuple, new), rows, strict=True))
        return [known[tuple(one)] for one in sequences]

    return odds


def watched(**options):
    """An LLM whose cache is checked before every step and after it."""
    llm = LLM("tutor", **options)
    step = llm.engine.step

    def checked():
        llm.engine.check()
        outputs = step()
        llm.engine.check()
        return outputs

    llm.engine.step = checked
    return llm


def assert_clean(llm):
    llm.engine.check()
    assert not llm.engine.has_unfinished_requests()
    assert llm.engine.manager.pool.num_free == llm.engine.manager.pool.num_blocks


def expected(dense, llm, question, params):
    return search(
        dense,
        llm.tokenizer.prompt_ids(question),
        width=params.beam_width,
        max_tokens=params.max_tokens,
        length_penalty=params.length_penalty,
        early_stopping=params.early_stopping,
        eos=() if params.ignore_eos else (END,),
    )


def assert_same(beams, right):
    assert [beam.token_ids for beam in beams] == [tokens for tokens, _, _ in right]
    for beam, (_, total, score) in zip(beams, right, strict=True):
        assert beam.cumulative_logprob == pytest.approx(total, abs=1e-4)
        assert beam.score == pytest.approx(score, rel=1e-5, abs=1e-5)


RULES = [
    BeamSearchParams(beam_width=w, max_tokens=20, length_penalty=p, early_stopping=e)
    for w, p, e in [
        *itertools.product((1, 2, 4), (1.0,), (False, True, "never")),
        *((3, penalty, False) for penalty in (-1.0, 0.0, 2.0)),
    ]
]


@pytest.mark.parametrize("params", RULES, ids=str)
def test_beams_equal_a_search_without_a_cache(dense, params):
    llm = watched(block_size=16, num_blocks=400)
    found = llm.beam_search(QUESTIONS[:2], params)
    for question, beams in zip(QUESTIONS, found, strict=False):
        assert_same(beams, expected(dense, llm, question, params))
        assert [b.score for b in beams] == sorted((b.score for b in beams), reverse=True)
    assert_clean(llm)


@pytest.mark.parametrize("block_size", [1, 3, 16])
@pytest.mark.parametrize("caching", ["off", "hash", "radix"])
def test_beams_are_the_same_in_small_pools_beside_other_requests(dense, block_size, caching):
    params = BeamSearchParams(beam_width=3, max_tokens=24)
    slots = 3 * (len(QUESTIONS[1]) + 70 + 24 + block_size)
    llm = watched(
        block_size=block_size,
        num_blocks=-(-slots // block_size),
        max_num_batched_tokens=40,
        enable_prefix_caching=caching,
    )
    for number in range(6):
        prompt = list(range(10 + number, 110 + number))
        other = SamplingParams(max_tokens=20 + 9 * number, ignore_eos=True)
        llm.engine.add_request(f"other {number}", prompt, other)
    found = llm.beam_search(QUESTIONS[:2], params)
    for question, beams in zip(QUESTIONS, found, strict=False):
        assert_same(beams, expected(dense, llm, question, params))
    assert llm.engine.metrics.num_preemptions_total > 0
    while llm.engine.has_unfinished_requests():
        llm.engine.step()
    assert_clean(llm)


def test_a_beam_of_one_is_greedy():
    llm = watched(block_size=16, num_blocks=100)
    for question in QUESTIONS:
        (beam,) = llm.beam_search(question, BeamSearchParams(beam_width=1))[0]
        (answer,) = llm.generate(question, SamplingParams(max_tokens=64, logprobs=0))
        assert (beam.token_ids, beam.text) == (answer.token_ids, answer.text)
        assert beam.finish_reason == answer.finish_reason
        total = sum(entry.logprob for entry in answer.logprobs)
        assert beam.cumulative_logprob == pytest.approx(total, abs=1e-4)
        assert beam.score == pytest.approx(total / len(answer.token_ids), abs=1e-5)


def test_text_ends_before_the_end_token_and_ignoring_it_goes_on():
    llm = watched(block_size=16, num_blocks=200)
    (beams,) = llm.beam_search("What is MQA?", BeamSearchParams(beam_width=3, max_tokens=200))
    ended = [beam for beam in beams if beam.finish_reason == "stop"]
    assert ended and all(beam.token_ids[-1] == END for beam in ended)
    assert all(beam.text.encode() == bytes(beam.token_ids[:-1]) for beam in ended)
    params = BeamSearchParams(beam_width=3, max_tokens=40, ignore_eos=True)
    (beams,) = llm.beam_search(llm.tokenizer.prompt_ids("What is MQA?"), params)
    assert [beam.finish_reason for beam in beams] == ["length"] * 3
    assert [len(beam.token_ids) for beam in beams] == [40] * 3
    assert_clean(llm)
