"""The kernel for chunks, alone and beside decodes, against the torch reference."""

from __future__ import annotations

import pytest

pytest.importorskip("triton", reason="triton has wheels for Linux only")

import torch
from grid import CHUNKS, config, every, few, keys_of, name_of
from paged import guarded, paged

from minipaged.kernels.meta import AttentionMeta
from minipaged.kernels.triton_attention import paged_prefill, query_tiles
from minipaged.kernels.triton_backend import TritonAttention


def prefill_case(row):
    context = keys_of(row["context"], row["block_size"], row["tile"])
    most = {"one": 1, "few": 3, "many": 13}[row["queries"]]
    queries = max(1, min(most, context))  # a row without keys has a query all the same
    # the other rows: a decode, nothing, a whole prompt, a chunk of a prompt
    case = paged(
        [(1, 6), (queries, context), (0, 4), (3, 3), (2, 7)],
        block_size=row["block_size"],
        kv_heads=row["kv_heads"],
        group=row["group"],
        dim=row["dim"],
        dtype=row["dtype"],
        packed=row["packed"],
    )
    out, lse = paged_prefill(
        *case.inputs,
        min_queries=row["min_queries"],
        config=config(row["tile"], row["carry"], row["rows"]),
        out=case.out,
    )
    assert out is case.out
    lengths = case.meta.query_start_loc.diff()
    case.assert_right(out, lse, (lengths >= row["min_queries"]).repeat_interleave(lengths))


@pytest.mark.parametrize("row", few(**CHUNKS), ids=name_of)
def test_prefill(row):
    prefill_case(row)


@pytest.mark.slow
@pytest.mark.parametrize("row", every(**CHUNKS), ids=name_of)
def test_prefill_in_every_shape(row):
    prefill_case(row)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("dim", [64, 256])
def test_the_shipped_configurations(dim, dtype):
    case = paged([(1, 70), (9, 81)], block_size=16, kv_heads=1, group=4, dim=dim, dtype=dtype)
    case.assert_right(*paged_prefill(*case.inputs))


def test_a_prompt_of_several_tiles_of_queries_and_keys():
    case = paged([(50, 50), (1, 9), (37, 60)], block_size=6, kv_heads=1, group=3)
    case.assert_right(*paged_prefill(*case.inputs, config=config(16, True)))


@pytest.mark.parametrize("queries", [1, 3])
def test_rows_with_queries_and_no_keys(queries):
    case = paged([(queries, 0), (2, 5)])
    out, lse = paged_prefill(*case.inputs, out=case.out)
    case.assert_right(out, lse)
    assert (out[:queries] == 0).all() and (lse[:queries] == float("-inf")).all()


def test_nothing_in_the_batch():
    case = paged([(1, 5)])
    none = torch.zeros(0, dtype=torch.int64)
    meta = AttentionMeta(torch.zeros(1, dtype=torch.int64), none, none.view(0, 0))
    out, _ = paged_prefill(case.q[:0], case.k_pool, case.v_pool, meta)
    assert out.shape == (0, 6, 32)


def test_int32_metadata_and_queries_that_are_not_contiguous():
    case = paged([(4, 21), (1, 3)])
    wide = guarded((5, 6, 64), torch.float32)
    wide[..., ::2] = case.q
    narrow = (case.meta.query_start_loc, case.meta.seq_lens, case.meta.block_tables.clamp(-1, 99))
    meta = AttentionMeta(*(x.int() for x in narrow))
    case.assert_right(*paged_prefill(wide[..., ::2], case.k_pool, case.v_pool, meta))


def test_the_list_of_tiles():
    starts = torch.tensor([0, 5, 5, 6, 14])
    seq, first = query_tiles(starts, 4)
    assert list(zip(seq.tolist(), first.tolist(), strict=True)) == [
        (0, 0), (0, 4), (2, 0), (3, 0), (3, 4),
    ]  # fmt: skip
    seq, first = query_tiles(starts, 4, min_queries=2)
    assert seq.tolist() == [0, 0, 3, 3] and first.tolist() == [0, 4, 0, 4]
    assert query_tiles(torch.tensor([0, 1, 2]), 4, min_queries=2)[0].tolist() == []


@pytest.mark.parametrize("split_size", [None, 64])
@pytest.mark.parametrize(
    "lengths",
    [[(1, 70), (1, 5), (1, 0)], [(1, 70), (5, 9), (0, 3), (1, 0), (2, 2)], [(7, 7)], [(0, 3)]],
    ids=["decodes", "mixed", "chunk", "no queries"],
)
def test_the_backend_takes_any_mix(lengths, split_size):
    case = paged(lengths)
    out = TritonAttention(split_size)(*case.inputs)
    case.assert_right(out, case.expected_lse.float())
    again = TritonAttention(split_size)(*case.inputs)  # the next layer finds the memo filled
    assert torch.equal(out, again)
