"""The engine on the kernels: tokens equal those of transformers, whatever the schedule.

As in tests/test_golden.py, with fewer and shorter prompts: the interpreter takes about a second
for a prompt of 50 tokens. All pools are NaN until somebody writes to them.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("triton", reason="triton has wheels for Linux only")

import torch

from minipaged import LLM, SamplingParams
from minipaged.components import Components
from minipaged.kernels import triton_backend
from minipaged.kernels.triton_backend import TritonAttention
from minipaged.llm import TUTOR

MAX_TOKENS = 6
TEXTS = ["MQA?", "What is a block?", "What is a pool?", "写"]


def greedy(model, ids):
    """What transformers writes after `ids`, at most MAX_TOKENS tokens."""
    with torch.inference_mode():
        out = model.generate(
            torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            do_sample=False,
            max_new_tokens=MAX_TOKENS,
            eos_token_id=257,
            pad_token_id=257,
        )
    return out[0, len(ids) :].tolist()


@pytest.fixture(scope="module")
def golden():
    """[(prompt ids, tokens)]; the first is a question as the tutor is asked it."""
    from transformers import LlamaForCausalLM

    tokenizer = LLM("tutor", num_blocks=1).tokenizer
    model = LlamaForCausalLM.from_pretrained(TUTOR, dtype=torch.float32).eval()
    prompts = [tokenizer.prompt_ids("What is MQA?"), *map(tokenizer.encode, TEXTS)]
    return [(ids, greedy(model, ids)) for ids in prompts]


def triton_llm(**options):
    options.setdefault("max_num_seqs", 6)
    return LLM("tutor", attention_backend="triton", **options)


def serve(llm, prompts, spread=0, n=1):
    """Tokens by prompt and sample; prompt i arrives at step spread * i. Checked at every step."""
    engine, tokens, now, waiting = llm.engine, {}, 0, list(enumerate(prompts))
    params = SamplingParams(max_tokens=MAX_TOKENS, n=n)
    while waiting or engine.has_unfinished_requests():
        while waiting and waiting[0][0] * spread <= now:
            number, ids = waiting.pop(0)
            engine.add_request(str(number), ids, params)
        for output in engine.step():
            key = int(output.request_id), output.sample_index
            tokens[key] = tokens.get(key, []) + output.new_token_ids
        engine.check()
        now += 1
        assert now < 500
    assert engine.manager.pool.num_free == engine.manager.pool.num_blocks
    return tokens


def expected(golden, n=1):
    return {(i, k): tokens for i, (_, tokens) in enumerate(golden) for k in range(n)}


def test_a_question_to_the_tutor(golden):
    assert serve(triton_llm(block_size=16, num_blocks=8), [golden[0][0]]) == expected(golden[:1])


@pytest.mark.parametrize("block_size", [6])
def test_chunks_beside_decodes(golden, block_size):
    """A budget of 7 cuts every prompt, and each arrives while another decodes."""
    llm = triton_llm(
        block_size=block_size, num_blocks=-(-96 // block_size), max_num_batched_tokens=7
    )
    assert serve(llm, [ids for ids, _ in golden[1:]], spread=2) == expected(golden[1:])


@pytest.mark.parametrize(
    "options",
    [{}, {"preemption": "swap", "num_host_blocks": 8}],
    ids=["recompute", "swap"],
)
def test_preemption(golden, options):
    llm = triton_llm(block_size=2, num_blocks=12, **options)
    asked = [golden[1], golden[2], golden[4]]
    assert serve(llm, [ids for ids, _ in asked]) == expected(asked)
    assert llm.engine.metrics.num_preemptions_total > 0
    assert (llm.engine.metrics.num_swapped_in_blocks_total > 0) == bool(options)


def test_prefix_cache_and_copy_on_write(golden):
    llm = triton_llm(block_size=4, num_blocks=60, enable_prefix_caching="hash")
    prompts = [ids for ids, _ in golden[2:4]]
    assert serve(llm, prompts, spread=2, n=2) == expected(golden[2:4], n=2)
    assert llm.engine.metrics.prefix_cache_hits_total >= 8
    assert llm.engine.metrics.num_copied_blocks_total > 0


def test_pieces_of_a_fixed_size(golden, monkeypatch):
    """Decodes by their own kernel in every step, in pieces of 32 keys."""
    launched = []

    def spy(*args, **kwargs):
        launched.append(kwargs["split_size"])
        return decode(*args, **kwargs)

    decode = triton_backend.paged_decode
    monkeypatch.setattr(triton_backend, "paged_decode", spy)
    parts = replace(Components(), attention=TritonAttention(split_size=32))
    llm = triton_llm(components=parts, block_size=4, num_blocks=24, max_num_batched_tokens=9)
    assert serve(llm, [ids for ids, _ in golden[1:4]], spread=2) == expected(golden[1:4])
    assert set(launched) == {32}


def test_half_precision_tokens_equal_the_torch_backends(golden):
    """In float16 the two backends round differently, but not by so much that a token changes."""
    prompts = [ids for ids, _ in golden[1:3]]
    options = {"dtype": "float16", "block_size": 4, "num_blocks": 60}
    assert serve(triton_llm(**options), prompts) == serve(LLM("tutor", **options), prompts)
