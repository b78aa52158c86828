"""The public face: generate, stream, model folders, replaced parts, refusals."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from minipaged import LLM, Components, EngineConfig, SamplingParams
from minipaged.cache.pool import BlockPool
from minipaged.kernels.reference import paged_attention

QUESTION = "What is a block table?"


@pytest.fixture(scope="module")
def llm():
    return LLM("tutor", block_size=16, num_blocks=200)


def assert_clean(llm):
    llm.engine.check()
    assert not llm.engine.has_unfinished_requests()
    assert llm.engine.manager.pool.num_free == llm.engine.manager.pool.num_blocks


def test_generate_keeps_the_order_of_the_prompts(llm):
    long, short = llm.generate([QUESTION, "What is MQA?"])
    assert "physical block" in long.text
    assert "KV head" in short.text
    assert len(long.token_ids) > len(short.token_ids)
    assert (long.finish_reason, long.prompt) == ("stop", QUESTION)
    assert long.text.encode() == bytes(long.token_ids[:-1])
    assert long.times.time_to_first_token >= 0
    assert_clean(llm)


def test_stream_gives_the_same_text_in_pieces(llm):
    pieces = list(llm.stream("什么是块表？"))
    assert len(pieces) > 10
    assert all(pieces) and "\ufffd" not in "".join(pieces)
    assert "".join(pieces) == llm.generate("什么是块表？")[0].text
    assert_clean(llm)


def test_a_stream_closed_early_is_aborted(llm):
    stream = llm.stream(QUESTION)
    next(stream)
    assert llm.engine.has_unfinished_requests()
    stream.close()
    assert_clean(llm)
    llm.stream(QUESTION)  # never read: nothing was queued
    assert_clean(llm)


def test_two_streams_and_a_generate_at_once(llm):
    expected = [c.text for c in llm.generate([QUESTION, "What is MQA?"])]
    first, second = llm.stream(QUESTION), llm.stream("What is MQA?")
    got_first, got_second = next(first), next(second)
    assert llm.generate(QUESTION)[0].text == expected[0]
    for piece in second:
        got_second += piece
    got_first += "".join(first)
    assert [got_first, got_second] == expected
    assert_clean(llm)


def test_one_bad_prompt_stops_all_before_they_start(llm):
    before = llm.engine.metrics.steps_total
    with pytest.raises(ValueError, match=r"prompt 1: the prompt needs \d+ tokens"):
        llm.generate([QUESTION, "x" * 5000])
    with pytest.raises(ValueError, match="2 SamplingParams for 1 prompts"):
        llm.generate([QUESTION], [SamplingParams(), SamplingParams()])
    with pytest.raises(ValueError, match="is empty"):
        llm.stream("")
    assert llm.engine.metrics.steps_total == before
    assert_clean(llm)


@pytest.mark.parametrize(
    ("prompts", "params", "words"),
    [
        (None, None, "prompts is None"),
        (b"What", None, "prompts is b'What'"),
        ([None], None, "prompt is None"),
        ([1.0], None, "prompt is 1.0"),
        ([True, False], None, "prompt token True"),
        (QUESTION, {"max_tokens": 3}, "params is {'max_tokens': 3}"),
        (QUESTION, [None], "params is None"),
        (QUESTION, SamplingParams(stop_token_ids=[999]), "stop token 999"),
        ("  ", None, "is empty"),
    ],
)
def test_what_is_no_prompt_is_refused_in_one_line(llm, prompts, params, words):
    with pytest.raises(ValueError, match=words) as caught:
        llm.generate(prompts, params)
    assert "\n" not in str(caught.value)
    assert_clean(llm)


def test_request_ids_are_text(llm):
    for wrong in (None, 5):
        with pytest.raises(ValueError, match="is no text"):
            llm.engine.add_request(wrong, QUESTION)
    assert_clean(llm)


def test_ids_of_ones_own_do_not_clash(llm):
    number = int(llm._add("x", SamplingParams()).removeprefix("request-"))
    llm.engine.abort(f"request-{number}")
    llm.engine.add_request(f"request-{number + 2}", QUESTION)
    answers = llm.generate([QUESTION, "What is MQA?"])
    assert all(answer.finish_reason == "stop" for answer in answers)
    llm.engine.abort(f"request-{number + 2}")
    assert_clean(llm)


def test_steps_made_by_hand_lose_no_text(llm):
    expected = llm.generate(QUESTION)[0].text
    stream = llm.stream(QUESTION)
    text = next(stream)
    for _ in range(5):
        llm.engine.step()
    assert text + "".join(stream) == expected
    assert_clean(llm)


def test_generate_interrupted_leaves_nothing(llm, monkeypatch):
    calls = []

    def interrupt(plan):
        calls.append(plan)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return right(plan)

    right = llm.engine.executor.execute
    monkeypatch.setattr(llm.engine.executor, "execute", interrupt)
    with pytest.raises(KeyboardInterrupt):
        llm.generate([QUESTION, "What is MQA?"])
    monkeypatch.undo()
    assert_clean(llm)


def test_stop_strings_logprobs_and_limits(llm):
    (answer,) = llm.generate(QUESTION, SamplingParams(stop="physical", logprobs=2))
    full = llm.generate(QUESTION)[0].text
    assert answer.text == full[: full.index("physical")]
    assert answer.finish_reason == "stop"
    assert len(answer.logprobs) == len(answer.token_ids)
    for token, entry in zip(answer.token_ids, answer.logprobs, strict=True):
        assert entry.token_id == token == entry.top[0][0]
        assert entry.rank == 1 and len(entry.top) == 2 and entry.logprob <= 0
    (cut,) = llm.generate(QUESTION, SamplingParams(max_tokens=5))
    assert (cut.text, cut.finish_reason) == (full[:5], "length")
    (ids,) = llm.generate(llm.tokenizer.prompt_ids(QUESTION))
    assert ids.text == full


def test_unknown_questions_have_neighbours(llm):
    assert llm.nearest_known(QUESTION) == []
    assert "Explain the block table." in llm.nearest_known("block table, please explain")


def test_replaced_parts_are_what_runs():
    calls = {"pool": 0, "attention": 0}

    class MyPool(BlockPool):
        def allocate(self, count):
            calls["pool"] += 1
            return super().allocate(count)

    def my_attention(q, k_pool, v_pool, meta):
        calls["attention"] += 1
        return paged_attention(q, k_pool, v_pool, meta)

    parts = replace(Components(), block_pool=MyPool, attention=my_attention)
    (answer,) = LLM("tutor", components=parts).generate("What is MQA?")
    assert "KV head" in answer.text
    assert calls["pool"] > 1 and calls["attention"] > 10


def test_a_wrong_attention_shows_in_the_text():
    """What the learner puts in is what computes: an attention that reads nothing ruins the text."""
    parts = replace(Components(), attention=lambda q, k, v, meta: torch.zeros_like(q))
    (answer,) = LLM("tutor", components=parts).generate(
        "What is MQA?", SamplingParams(max_tokens=30)
    )
    assert "KV head" not in answer.text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": "no-such-model"}, "no model 'no-such-model'"),
        ({"blok_size": 4}, "did you mean 'block_size'"),
        ({"max_model_len": 100_000}, "the model has 1024 positions"),
        ({"kv_cache_memory": 1000}, "1000 bytes are left"),
        ({"config": EngineConfig(), "block_size": 4}, "not both"),
        ({"num_blocks": 2**24, "block_size": 2**14}, "more than can be had on cpu"),
        ({"config": {}}, "give an EngineConfig"),
        ({"components": Components}, "give an EngineConfig and Components"),
    ],
)
def test_bad_options_are_refused_in_one_line(options, words):
    with pytest.raises(ValueError, match=words) as caught:
        LLM(**options)
    assert "\n" not in str(caught.value)


def test_the_pool_is_derived_from_memory():
    llm = LLM("tutor", block_size=16, kv_cache_memory=10 * 2**20)
    per_token = 2 * 5 * 2 * 32 * 4  # keys and values, layers, KV heads, head_dim, float32
    assert llm.memory.kv_bytes_per_token == per_token
    assert llm.engine.manager.num_blocks == 10 * 2**20 // (16 * per_token)


@pytest.fixture(scope="module")
def hf_folder(tmp_path_factory):
    """A random Llama with a byte-level BPE tokenizer, as transformers writes them."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM

    folder = tmp_path_factory.mktemp("model é")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(["paged attention and block tables, 块表"] * 5, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        max_position_embeddings=256,
        bos_token_id=0,
        eos_token_id=1,
        initializer_range=0.3,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def test_a_hugging_face_folder_gives_the_tokens_of_transformers(hf_folder):
    from tokenizers import Tokenizer
    from transformers import LlamaForCausalLM

    llm = LLM(hf_folder, block_size=4, num_blocks=40, max_num_batched_tokens=9)
    prompts = ["block tables", "paged attention 块", "a"]
    answers = llm.generate(prompts, SamplingParams(max_tokens=20))
    model = LlamaForCausalLM.from_pretrained(hf_folder).eval()
    tokenizer = Tokenizer.from_file(str(hf_folder / "tokenizer.json"))
    for prompt, answer in zip(prompts, answers, strict=True):
        ids = tokenizer.encode(prompt).ids
        out = model.generate(
            torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            do_sample=False,
            max_new_tokens=20,
            pad_token_id=1,
        )
        assert answer.token_ids == out[0, len(ids) :].tolist()
        expected = tokenizer.decode(answer.token_ids, skip_special_tokens=True)
        assert answer.text == expected
    assert_clean(llm)


def test_a_folder_that_lacks_a_file_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"\.json"):
        LLM(tmp_path)


def test_loading_the_tutor_does_not_load_torchs_compiler():
    """It takes longer than everything else of a cold start together."""
    code = (
        "import sys; from minipaged import LLM; LLM('tutor'); print('torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
