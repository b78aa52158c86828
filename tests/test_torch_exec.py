"""Plans written by hand through a real model, against transformers on the same weights."""

import dataclasses

import pytest
import torch
import transformers

from minipaged.config import CacheConfig, SamplingParams
from minipaged.exec.memory import MemorySum, derive_num_blocks, measure_workspace, weight_bytes
from minipaged.exec.torch_exec import TorchExecutor
from minipaged.kernels.backends import TORCH
from minipaged.kernels.reference import paged_attention
from minipaged.model.llama import LlamaConfig
from minipaged.model.loader import load_llama
from minipaged.plan import BlockMove, SampleSpec, ScheduledItem, StepPlan

OUTPUTS = 6


def spec(index, **params):
    return SampleSpec(SamplingParams(**params), 0, 0, index, 1, params.get("logprobs"))


def item(request_id, tokens, start, first_block, blocks, sample=None, draft_len=0):
    return ScheduledItem(request_id, tokens, start, first_block, blocks, sample, draft_len)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """(transformers' model, ours) with the same random weights."""
    folder = tmp_path_factory.mktemp("tiny")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=97,
        hidden_size=48,
        intermediate_size=80,
        num_hidden_layers=3,
        num_attention_heads=6,
        num_key_value_heads=2,
        max_position_embeddings=128,
        eos_token_id=None,
        bos_token_id=None,
    )
    theirs = transformers.LlamaForCausalLM(config).eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    theirs.save_pretrained(folder)
    return theirs, load_llama(folder, torch.float32)


def executor(model, num_blocks=16, block_size=4, **options):
    """An executor whose unwritten slots hold NaN, the worst that they may hold."""
    made = TorchExecutor(
        model, CacheConfig(block_size=block_size, num_blocks=num_blocks), **options
    )
    for pool in (*made.k_pools, *made.v_pools):
        pool.fill_(float("nan"))
    return made


def generated(model, prompt, count=OUTPUTS):
    out = model.generate(torch.tensor([prompt]), max_new_tokens=count, do_sample=False)
    return out[0, len(prompt) :].tolist()


PROMPT_A = [5, 17, 3, 88, 42, 9, 61, 30, 12, 77, 2]
PROMPT_B = [44, 8, 90]


def run_two_requests(run):
    """A in chunks of 5, 4 and 2 while B is read and decodes; then both decode. -> outputs of each.

    Blocks of 4; the tables are out of order, and grow by one entry when a block is full.
    """
    tables = {"a": [9, 2, 7, 12, 5], "b": [3, 14, 0]}
    known = {"a": list(PROMPT_A), "b": list(PROMPT_B)}
    computed, sent = {"a": 0, "b": 0}, {"a": 0, "b": 0}
    chunks = {"a": [5, 4, 2], "b": [0, 3]}
    prompts = {"a": len(PROMPT_A), "b": len(PROMPT_B)}
    for step in range(20):
        items = []
        for name in ("a", "b"):
            length = chunks[name].pop(0) if chunks[name] else 1
            if not length or len(known[name]) - prompts[name] == OUTPUTS:
                continue
            start, end = computed[name], computed[name] + length
            new = tables[name][sent[name] : -(-end // 4)]
            last = end == len(known[name])
            sample = spec(len(known[name]) - prompts[name]) if last else None
            items.append(item(name, known[name][start:end], start, sent[name], new, sample))
            computed[name], sent[name] = end, sent[name] + len(new)
        result = run.execute(StepPlan(step, items=items))
        for name, tokens in result.token_ids.items():
            known[name] += tokens
        assert set(result.token_ids) == {i.request_id for i in items if i.sample}
        assert result.elapsed > 0
        if not items:
            break
    return {name: known[name][prompts[name] :] for name in known}


def test_chunks_and_decodes_give_what_transformers_gives(pair):
    theirs, ours = pair
    out = run_two_requests(executor(ours))
    assert out == {"a": generated(theirs, PROMPT_A), "b": generated(theirs, PROMPT_B)}


def test_another_attention_function_is_used_for_every_layer(pair):
    theirs, ours = pair
    calls = []

    def mine(q, k_pool, v_pool, meta):
        calls.append((q.shape, k_pool.shape, len(meta.seq_lens)))
        return paged_attention(q, k_pool, v_pool, meta)

    out = run_two_requests(executor(ours, kernels=TORCH._replace(attention=mine)))
    assert out["b"] == generated(theirs, PROMPT_B)
    assert calls[0] == ((5, 6, 8), (16, 4, 2, 8), 1)
    assert len(calls) % 3 == 0
    blind = TORCH._replace(attention=lambda q, *_: torch.zeros_like(q))
    wrong = executor(ours, kernels=blind)
    assert run_two_requests(wrong)["a"] != out["a"]


def test_copies_come_before_items(pair):
    """b forks from a, whose last block (4 of its slots written) is copied for b to write on."""
    theirs, ours = pair
    run = executor(ours)
    prompt = PROMPT_A[:6]
    first = run.execute(StepPlan(0, items=[item("a", prompt, 0, 0, [9, 2], spec(0))]))
    token = first.token_ids["a"][0]
    plan = StepPlan(
        1,
        copies=[BlockMove(2, 11)],
        items=[
            item("a", [token], 6, 2, [], spec(1)),
            item("b", [50], 6, 0, [9, 11], spec(1)),
        ],
    )
    second = run.execute(plan).token_ids
    assert second["a"] == generated(theirs, [*prompt, token], 1)
    assert second["b"] == generated(theirs, [*prompt, 50], 1)
    third = run.execute(StepPlan(2, items=[item("a", second["a"], 7, 2, [], spec(2))])).token_ids
    assert third["a"] == generated(theirs, [*prompt, token, *second["a"]], 1)


def test_case_20_last_block_computed_again_at_its_own_positions(pair):
    """A prompt of two full blocks is all there; its last block is computed again by a new row."""
    theirs, ours = pair
    run = executor(ours)
    prompt = PROMPT_A[:8]
    cold = run.execute(StepPlan(0, items=[item("a", prompt, 0, 0, [9, 2], spec(0, logprobs=5))]))
    again = item("b", prompt[4:], 4, 0, [9, 6], spec(0, logprobs=5))
    warm = run.execute(StepPlan(1, items=[again], finished=["a"]))
    assert warm.token_ids["b"] == cold.token_ids["a"] == generated(theirs, prompt, 1)
    assert [t for t, _ in warm.logprobs["b"][0].top] == [t for t, _ in cold.logprobs["a"][0].top]
    assert warm.logprobs["b"][0].logprob == pytest.approx(cold.logprobs["a"][0].logprob, abs=1e-5)


def test_finished_rows_are_forgotten(pair):
    run = executor(pair[1])
    run.execute(StepPlan(0, items=[item("a", [1, 2, 3, 4], 0, 0, [0])]))
    with pytest.raises(ValueError, match="only 0 are known"):
        run.execute(StepPlan(1, items=[item("a", [5], 4, 1, [1])], finished=["a"]))


def test_an_empty_plan_and_a_plan_of_copies_only(pair):
    run = executor(pair[1])
    assert run.execute(StepPlan(0)).token_ids == {}
    run.k_pools[1][3] = 2.5
    run.execute(StepPlan(1, copies=[BlockMove(3, 4)]))
    assert (run.k_pools[1][4] == 2.5).all()


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (StepPlan(4, swap_out=[BlockMove(0, 0)]), "leaves the pool of 0 blocks"),
        (StepPlan(4, swap_in=[BlockMove(0, 0)]), "leaves the pool of 0 blocks"),
        (StepPlan(4, copies=[BlockMove(3, 16)]), "leaves the pool of 16 blocks"),
        (StepPlan(4, copies=[BlockMove(-1, 2)]), "leaves the pool of 16 blocks"),
        (StepPlan(4, items=[item("a", [1, 2], 0, 0, [0], spec(0), 1)]), "brings 1 drafted"),
    ],
)
def test_what_it_cannot_do_is_refused(pair, plan, message):
    run = executor(pair[1])
    with pytest.raises(ValueError, match=message):
        run.execute(plan)


def test_num_blocks_must_be_set(pair):
    with pytest.raises(ValueError, match="derive_num_blocks"):
        TorchExecutor(pair[1], CacheConfig())


def test_the_memory_sum_on_a_cpu(pair):
    llama3_8b = LlamaConfig(128256, 4096, 14336, 32, 32, 8, 128)
    options = {"device": "cpu", "dtype": torch.bfloat16, "weight_bytes": 16_060_000_000}
    found = derive_num_blocks(llama3_8b, CacheConfig(kv_cache_memory=2**30), **options)
    assert found == MemorySum(2**21, 2**17, 16_060_000_000, 0, 2**30, 512)
    given = derive_num_blocks(llama3_8b, CacheConfig(num_blocks=7), **options)
    assert (given.num_blocks, given.available) == (7, 7 * 2**21)
    with pytest.raises(ValueError, match=r"1000 bytes are left .* takes 2097152"):
        derive_num_blocks(llama3_8b, CacheConfig(kv_cache_memory=1000), **options)
    assert weight_bytes(pair[1]) == sum(p.numel() for p in pair[0].parameters()) * 4
    assert measure_workspace(pair[1], 64, paged_attention) == 0


def test_the_memory_sum_on_a_gpu(monkeypatch):
    """80 GB, 20 of them in use, 5 of workspace: 0.9 x 80 - 20 - 5 = 47 GB for blocks."""
    gigabyte = 10**9
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (60 * gigabyte, 80 * gigabyte))
    config = dataclasses.replace(LlamaConfig(128256, 4096, 14336, 32, 32, 8, 128))
    found = derive_num_blocks(
        config,
        CacheConfig(),
        device="cuda",
        dtype=torch.bfloat16,
        weight_bytes=16 * gigabyte,
        workspace_bytes=5 * gigabyte,
    )
    assert found.available == 47 * gigabyte
    assert found.num_blocks == 47 * gigabyte // (16 * 131072)
