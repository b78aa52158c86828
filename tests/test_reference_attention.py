"""Paged attention in torch against plain attention over contiguous tensors in float64."""

import itertools

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from minipaged.kernels import reference
from minipaged.kernels.meta import AttentionMeta
from minipaged.kernels.reference import copy_blocks, paged_attention, slots_of, write_kv

NAN = float("nan")


def case(lengths, block_size, heads=6, kv_heads=2, dim=16, dtype=torch.float64, seed=0):
    """(q, k_pool, v_pool, meta, expected) for rows of (queries, keys) in `lengths`.

    All that no token was written to is NaN, and table entries past the last key are out of range.
    """
    rng = torch.Generator().manual_seed(seed)
    needed = [-(-keys // block_size) for _, keys in lengths]
    num_blocks, width = sum(needed) + 3, max(needed) + 2
    order = torch.randperm(num_blocks, generator=rng)
    tables = torch.full((len(lengths), width), 10**9)
    pools = [torch.full((num_blocks, block_size, kv_heads, dim), NAN, dtype=dtype) for _ in "kv"]
    q_rows, expected, taken = [], [], 0
    for row, (queries, keys) in enumerate(lengths):
        tables[row, : needed[row]] = order[taken : taken + needed[row]]
        taken += needed[row]
        q, k, v = (
            torch.randn(length, count, dim, dtype=dtype, generator=rng)
            for length, count in ((queries, heads), (keys, kv_heads), (keys, kv_heads))
        )
        slots = torch.tensor(
            [int(tables[row, p // block_size]) * block_size + p % block_size for p in range(keys)],
            dtype=torch.int64,
        )
        write_kv(k, v, *pools, slots)
        q_rows.append(q)
        expected.append(plain_attention(q, k, v) if keys else torch.zeros_like(q))
    starts = torch.tensor([0, *itertools.accumulate(queries for queries, _ in lengths)])
    meta = AttentionMeta(starts, torch.tensor([keys for _, keys in lengths]), tables)
    return torch.cat(q_rows), *pools, meta, torch.cat(expected)


def plain_attention(q, k, v):
    """The last len(q) positions of ordinary causal attention over one sequence, in float64."""
    group, queries, keys = q.shape[1] // k.shape[1], len(q), len(k)
    k, v = (x.repeat_interleave(group, dim=1).transpose(0, 1).double() for x in (k, v))
    mask = torch.ones(keys, keys, dtype=torch.bool).tril()[keys - queries :]
    out = scaled_dot_product_attention(q.transpose(0, 1).double(), k, v, attn_mask=mask)
    return out.transpose(0, 1).to(q.dtype)


MIXES = {
    "decodes": [(1, 1), (1, 7), (1, 16), (1, 33), (1, 5)],
    "whole_prompts": [(9, 9), (1, 1), (16, 16), (5, 5)],
    "chunks_and_decodes": [(1, 40), (6, 20), (1, 3), (13, 13), (2, 31), (1, 12)],
    "longer_than_a_tile": [(150, 170), (1, 200), (65, 65)],
}


@pytest.mark.parametrize("block_size", [1, 3, 4, 16])
@pytest.mark.parametrize("lengths", MIXES.values(), ids=MIXES)
def test_equals_plain_attention(lengths, block_size):
    q, k_pool, v_pool, meta, expected = case(lengths, block_size)
    torch.testing.assert_close(paged_attention(q, k_pool, v_pool, meta), expected)


@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 4), (9, 3), (16, 2), (1, 1)])
@pytest.mark.parametrize("dim", [16, 80])
def test_query_groups_and_head_sizes(heads, kv_heads, dim):
    q, k_pool, v_pool, meta, expected = case(
        MIXES["chunks_and_decodes"], 4, heads=heads, kv_heads=kv_heads, dim=dim
    )
    torch.testing.assert_close(paged_attention(q, k_pool, v_pool, meta), expected)


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float32, 1e-5), (torch.bfloat16, 2e-2), (torch.float16, 2e-3)],
)
def test_narrow_types_stay_near_float64(dtype, tolerance):
    q, k_pool, v_pool, meta, expected = case(MIXES["chunks_and_decodes"], 4, dtype=dtype)
    out = paged_attention(q, k_pool, v_pool, meta)
    assert out.dtype == dtype
    torch.testing.assert_close(out.double(), expected.double(), rtol=tolerance, atol=tolerance)


def test_a_thousand_keys_in_bfloat16_are_summed_in_float32():
    """With V = 1 every output is 1, unless the sum of the weights was rounded to 8 bits."""
    q, k_pool, v_pool, meta, _ = case([(1, 1000), (3, 900)], 16, dtype=torch.bfloat16)
    v_pool.fill_(1.0)
    out = paged_attention(q, k_pool, v_pool, meta)
    torch.testing.assert_close(out, torch.ones_like(out), rtol=0, atol=1e-2)


@pytest.mark.parametrize("limits", [(1, 1), (500, 2000), (10**9, 10**9)])
@pytest.mark.parametrize("lengths", MIXES.values(), ids=MIXES)
def test_memory_limits_change_the_slices_and_not_the_result(monkeypatch, lengths, limits):
    monkeypatch.setattr(reference, "SCORE_LIMIT", limits[0])
    monkeypatch.setattr(reference, "GATHER_LIMIT", limits[1])
    q, k_pool, v_pool, meta, expected = case(lengths, 4)
    torch.testing.assert_close(paged_attention(q, k_pool, v_pool, meta), expected)


def test_slices_obey_the_limits(monkeypatch):
    monkeypatch.setattr(reference, "SCORE_LIMIT", 6 * 200 * 8)
    q, k_pool, v_pool, meta, _ = case([(150, 170), (1, 200), (65, 65), (1, 9)], 4)
    paged_attention(q, k_pool, v_pool, meta)
    (work,) = meta.memo.values()
    rectangles = [(*part.tokens.shape, part.slots.shape[1]) for part in work.parts]
    assert all(n * queries * keys <= 200 * 8 for n, queries, keys in rectangles)
    assert max(queries for _, queries, _ in rectangles) == 8


def test_a_step_is_sliced_once_for_all_layers(monkeypatch):
    q, k_pool, v_pool, meta, expected = case(MIXES["decodes"], 4)
    paged_attention(q, k_pool, v_pool, meta)
    monkeypatch.setattr(reference, "_parts", None)
    torch.testing.assert_close(paged_attention(q, k_pool, v_pool, meta), expected)


def test_int32_tables_serve_as_well():
    q, k_pool, v_pool, meta, expected = case(MIXES["decodes"], 4)
    narrow = AttentionMeta(
        *(x.int() for x in (meta.query_start_loc, meta.seq_lens, meta.block_tables))
    )
    torch.testing.assert_close(paged_attention(q, k_pool, v_pool, narrow), expected)


def test_case_30_slots_past_32_bits():
    tables = torch.tensor([[134_217_728, 200_000_000]], dtype=torch.int32)
    slots = slots_of(tables, torch.tensor([[0]]), torch.tensor([[0, 17]]), 16)
    assert slots.tolist() == [[2**31, 3_200_000_001]]


def test_case_31_head_dim_not_a_power_of_two():
    for dim in (80, 96):
        q, k_pool, v_pool, meta, expected = case([(1, 9), (4, 11)], 4, dim=dim)
        torch.testing.assert_close(paged_attention(q, k_pool, v_pool, meta), expected)


def test_case_32_gqa_groups():
    q = torch.randn(1, 48, 16)
    pool = torch.zeros(2, 4, 2, 16)
    v_pool = torch.arange(2.0).view(1, 1, 2, 1).expand_as(pool).contiguous()
    meta = AttentionMeta(torch.tensor([0, 1]), torch.tensor([6]), torch.tensor([[1, 0]]))
    out = paged_attention(q, pool, v_pool, meta)
    assert (out[0, :24] == 0).all() and (out[0, 24:] == 1).all()
    for heads in (33, 3):
        with pytest.raises(ValueError, match=f"{heads} query heads cannot share 2 KV heads"):
            paged_attention(q[:, :1].repeat(1, heads, 1), pool, v_pool, meta)


@pytest.mark.parametrize("queries", [1, 3])
def test_case_33_nan_in_unwritten_tail_slots(queries):
    q, k_pool, v_pool, meta, expected = case([(queries, 5)], 4)
    last_block = int(meta.block_tables[0, 1])
    assert k_pool[last_block, 1:].isnan().all() and v_pool[last_block, 1:].isnan().all()
    out = paged_attention(q, k_pool, v_pool, meta)
    assert out.isfinite().all()
    torch.testing.assert_close(out, expected)


def test_case_34_zero_length_rows():
    q, k_pool, v_pool, meta, expected = case([(1, 5), (1, 0), (1, 3)], 4)
    out = paged_attention(q, k_pool, v_pool, meta)
    assert (out[1] == 0).all()
    torch.testing.assert_close(out, expected)
    only_empty = AttentionMeta(torch.tensor([0, 1]), torch.tensor([0]), torch.zeros(1, 0).long())
    assert (paged_attention(q[:1], k_pool, v_pool, only_empty) == 0).all()


def test_case_35_block_table_is_used():
    pool = torch.zeros(4, 4, 1, 8)
    v_pool = torch.arange(4.0).view(4, 1, 1, 1).expand_as(pool).contiguous()
    meta = AttentionMeta(torch.tensor([0, 1]), torch.tensor([8]), torch.tensor([[3, 1]]))
    out = paged_attention(torch.ones(1, 1, 8), pool, v_pool, meta)
    torch.testing.assert_close(out, torch.full((1, 1, 8), 2.0))


def test_shapes_and_types_must_fit():
    q, k_pool, v_pool, meta, _ = case([(1, 5)], 4)
    with pytest.raises(ValueError, match="do not fit"):
        paged_attention(q, k_pool, v_pool[:-1], meta)
    with pytest.raises(ValueError, match="do not fit"):
        paged_attention(q[..., :8], k_pool, v_pool, meta)
    with pytest.raises(ValueError, match="use one dtype"):
        paged_attention(q.float(), k_pool, v_pool, meta)


def test_write_kv_touches_its_slots_and_no_other():
    k_pool, v_pool = torch.full((3, 4, 2, 8), NAN), torch.full((3, 4, 2, 8), NAN)
    k, v = torch.randn(3, 2, 8), torch.randn(3, 2, 8)
    slots = torch.tensor([11, 0, 6])
    write_kv(k, v, k_pool, v_pool, slots)
    assert torch.equal(k_pool.view(12, 2, 8)[slots], k)
    assert torch.equal(v_pool.view(12, 2, 8)[slots], v)
    assert k_pool.view(12, -1).isnan().all(1).sum() == v_pool.view(12, -1).isnan().all(1).sum() == 9


@pytest.mark.parametrize(
    "pairs",
    [[], [(0, 1)], [(0, 1), (0, 2)], [(0, 1), (1, 2)], [(0, 1), (2, 0)], [(0, 3), (1, 3), (3, 4)]],
)
def test_copies_are_as_if_one_after_another(pairs):
    pool = torch.arange(5.0).view(5, 1, 1).repeat(1, 4, 2)
    expected = list(range(5))
    for source, target in pairs:
        expected[target] = expected[source]
    copy_blocks(pool, pairs)
    assert pool[:, 0, 0].tolist() == expected
