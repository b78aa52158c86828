"""Beam search equals that of transformers: sequences, and sums of log-probabilities to 1e-4.

On the tutor's own weights, and on small random models that end often and at very different
lengths, so that the rules of stopping matter; the tutor knows too well what it wants to say.
"""

from __future__ import annotations

import itertools

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from minipaged import LLM, BeamSearchParams
from minipaged.beam import beam_search
from minipaged.config import EngineConfig
from minipaged.engine import Engine
from minipaged.exec.torch_exec import TorchExecutor
from minipaged.llm import TUTOR
from minipaged.model.loader import load_llama

QUESTIONS = ["What is MQA?", "What is a block table?", "什么是写时复制？"]
END = 257
STOPPING = (False, True, "never")


def beams_of_transformers(model, ids, params, eos):
    """(tokens, score) of every beam, best first; the padding behind a sequence cut off."""
    with torch.inference_mode():
        out = model.generate(
            torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            do_sample=False,
            num_beams=params.beam_width,
            num_return_sequences=params.beam_width,
            max_new_tokens=params.max_tokens,
            length_penalty=params.length_penalty,
            early_stopping=params.early_stopping,
            eos_token_id=list(eos),
            pad_token_id=eos[0],
            return_dict_in_generate=True,
            output_scores=True,
        )
    found = []
    for row, score in zip(out.sequences.tolist(), out.sequences_scores.tolist(), strict=True):
        tokens = row[len(ids) :]
        ends = [place for place, token in enumerate(tokens, 1) if token in eos]
        found.append((tokens[: ends[0]] if ends else tokens, score))
    return found


def assert_same(beams, right, length_penalty):
    assert [beam.token_ids for beam in beams] == [tokens for tokens, _ in right]
    for beam, (tokens, score) in zip(beams, right, strict=True):
        total = score * len(tokens) ** length_penalty
        assert beam.cumulative_logprob == pytest.approx(total, abs=1e-4)
        assert beam.score == pytest.approx(score, rel=1e-5, abs=1e-4)


@pytest.fixture(scope="module")
def tutor():
    return LlamaForCausalLM.from_pretrained(TUTOR, dtype=torch.float32).eval()


@pytest.mark.parametrize(
    ("width", "early_stopping", "length_penalty"),
    [*itertools.product((4,), STOPPING, (1.0,)), (2, False, 2.0), (8, "never", 0.0)],
)
def test_the_tutors_beams(tutor, width, early_stopping, length_penalty):
    params = BeamSearchParams(width, 70, length_penalty, early_stopping)
    llm = LLM("tutor", block_size=3, num_blocks=1600)
    for question, beams in zip(QUESTIONS, llm.beam_search(QUESTIONS, params), strict=True):
        ids = llm.tokenizer.prompt_ids(question)
        right = beams_of_transformers(tutor, ids, params, [END])
        assert_same(beams, right, length_penalty)


@pytest.fixture(scope="module", params=range(3))
def random_model(request, tmp_path_factory):
    """(transformers' model, a maker of engines on its weights); about 1 token in 20 ends."""
    folder = tmp_path_factory.mktemp("random")
    torch.manual_seed(request.param)
    config = LlamaConfig(
        vocab_size=26,
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        max_position_embeddings=128,
        bos_token_id=0,
        eos_token_id=1,
        initializer_range=0.25,
    )
    theirs = LlamaForCausalLM(config).eval()
    theirs.save_pretrained(folder)
    ours = load_llama(folder, torch.float32)

    def engine(**options):
        options = EngineConfig.of(max_model_len=128, **options)
        executor = TorchExecutor(ours, options.cache)
        return Engine(options, executor, vocab_size=26, eos_token_ids=(1,))

    return theirs, engine


@pytest.mark.parametrize("length_penalty", [-1.0, 0.0, 1.0, 3.0])
@pytest.mark.parametrize("eos", [(1,), (1, 7)])
def test_beams_of_a_model_that_ends_often(random_model, eos, length_penalty):
    theirs, make_engine = random_model
    prompts = [[3, 4, 5], [20, 6, 9, 11, 2], [8]]
    lengths = {}
    for width, stopping in itertools.product((2, 5), STOPPING):
        params = BeamSearchParams(width, 24, length_penalty, stopping)
        engine = make_engine(block_size=4, num_blocks=80, max_num_batched_tokens=13)
        found = beam_search(engine, prompts, params, eos_token_ids=eos)
        for prompt, beams in zip(prompts, found, strict=True):
            right = beams_of_transformers(theirs, prompt, params, eos)
            assert_same(beams, right, length_penalty)
        lengths[width, stopping] = [len(beam.token_ids) for beams in found for beam in beams]
        assert engine.manager.pool.num_free == 80
    if length_penalty > 0:  # else all three ways to stop agree on these models
        assert len(set(map(tuple, lengths.values()))) > 2
