"""The decode kernel and its merge against the torch reference."""

from __future__ import annotations

import pytest

pytest.importorskip("triton", reason="triton has wheels for Linux only")

import torch
from grid import SPLITS, config, every, few, keys_of, name_of
from paged import NAN, guarded, paged

from minipaged.kernels import triton_attention
from minipaged.kernels.meta import AttentionMeta
from minipaged.kernels.triton_attention import paged_decode, paged_prefill


def decode_case(row, monkeypatch):
    tile, context = row["tile"], keys_of(row["context"], row["block_size"], row["tile"])
    # rows without a query and with several are not the decode kernel's: they stay as they are
    case = paged(
        [(1, context), (0, 4), (3, 7), (1, 5)],
        block_size=row["block_size"],
        kv_heads=row["kv_heads"],
        group=row["group"],
        dim=row["dim"],
        dtype=row["dtype"],
        packed=row["packed"],
    )
    width = case.meta.block_tables.shape[1] * row["block_size"]
    monkeypatch.setattr(triton_attention, "INTERPRETER_SMS", 64)  # so many that "auto" splits
    sizes = {"none": -(-width // tile) * tile, "one tile": tile, "three tiles": 3 * tile}
    out, lse = paged_decode(
        *case.inputs,
        split_size=sizes.get(row["split"]),
        config=config(tile, row["carry"]),
        out=case.out,
    )
    assert out is case.out
    case.assert_right(out, lse, written=torch.tensor([True, False, False, False, True]))


@pytest.mark.parametrize("row", few(**SPLITS), ids=name_of)
def test_decode(row, monkeypatch):
    decode_case(row, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("row", every(**SPLITS), ids=name_of)
def test_decode_in_every_shape(row, monkeypatch):
    decode_case(row, monkeypatch)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("dim", [64, 256])
def test_the_shipped_configurations(dim, dtype):
    case = paged([(1, 70), (1, 131)], block_size=16, kv_heads=1, group=4, dim=dim, dtype=dtype)
    case.assert_right(*paged_decode(*case.inputs))


@pytest.mark.parametrize("spread", [0.0, 40.0])
def test_equal_scores_and_scores_far_apart(spread):
    """A later tile may hold a much larger score: what was summed before shrinks to nothing."""
    case = paged([(1, 90), (1, 7)], spread=spread)
    out, lse = paged_decode(*case.inputs, config=config(16, True))
    torch.testing.assert_close(out.double(), case.expected, rtol=0, atol=1e-4)
    torch.testing.assert_close(lse.double(), case.expected_lse, rtol=1e-6, atol=1e-4)


def test_scores_below_minus_a_thousand():
    """2^score is 0 in float32 for all of them: only their distance to the largest counts."""
    case = paged([(1, 40)], kv_heads=1, group=1)
    keys = case.k_pool.nan_to_num()
    case.k_pool.copy_(torch.where(case.k_pool.isnan(), NAN, -keys.abs() - 1))
    q = torch.full_like(case.q, 300.0)
    slots_read = case.v_pool.view(-1, 32)[~case.v_pool.view(-1, 32).isnan().any(1)]
    out, lse = paged_decode(q, case.k_pool, case.v_pool, case.meta, config=config(16, True))
    assert (lse < -1000).all() and out.isfinite().all()
    assert slots_read.min() <= out.min() and out.max() <= slots_read.max()


def test_splits_are_as_many_as_the_rule_says(monkeypatch):
    """The launch grid: one piece on a full card, as many as the rule gives on an empty one."""
    grids = []

    class Kernel:
        def __getitem__(self, grid):
            grids.append(grid)
            return lambda *args, **kwargs: None

    monkeypatch.setattr(triton_attention, "decode_kernel", Kernel())
    monkeypatch.setattr(triton_attention, "merge_kernel", Kernel())
    case = paged([(1, 300), (1, 9)], block_size=4)
    tiles = config(16, True)
    for sms in (4, 64):
        monkeypatch.setattr(triton_attention, "INTERPRETER_SMS", sms)
        paged_decode(*case.inputs, config=tiles)
    # 77 table entries of 4 slots are 20 tiles; at least 4 tiles a piece
    assert grids == [(2, 2, 1), (2, 2, 5), (2, 6)]


def test_nothing_in_the_batch_and_nothing_in_the_tables():
    case = paged([(1, 5)])
    none = torch.zeros(0, dtype=torch.int64)
    empty = AttentionMeta(torch.zeros(1, dtype=torch.int64), none, none.view(0, 0))
    out, lse = paged_decode(case.q[:0], case.k_pool, case.v_pool, empty)
    assert out.shape == (0, 6, 32) and lse.shape == (0, 6)
    no_keys = AttentionMeta(torch.tensor([0, 1]), torch.tensor([0]), none.view(1, 0))
    out, lse = paged_decode(case.q, case.k_pool, case.v_pool, no_keys)
    assert (out == 0).all() and (lse == float("-inf")).all()


def test_queries_and_indices_as_they_come():
    """A q that is not contiguous is copied; int32 metadata serves as well."""
    case = paged([(1, 21), (1, 3)])
    wide = guarded((2, 6, 64), torch.float32)
    wide[..., ::2] = case.q
    narrow = (case.meta.query_start_loc, case.meta.seq_lens, case.meta.block_tables.clamp(-1, 99))
    meta = AttentionMeta(*(x.int() for x in narrow))
    case.assert_right(*paged_decode(wide[..., ::2], case.k_pool, case.v_pool, meta))


@pytest.mark.parametrize("size", [0, -16, 24, 1])
def test_a_split_size_that_is_no_number_of_tiles(size):
    case = paged([(1, 5)])
    with pytest.raises(
        ValueError, match=f"split_size is {size}: give a multiple of the tile of 16"
    ):
        paged_decode(*case.inputs, split_size=size, config=config(16, True))


def test_what_does_not_fit_is_refused():
    case = paged([(1, 5)])
    q, k_pool, v_pool, meta = case.inputs
    with pytest.raises(ValueError, match="do not fit"):
        paged_decode(q[..., :16], k_pool, v_pool, meta)
    with pytest.raises(ValueError, match="use one dtype"):
        paged_decode(q.half(), k_pool, v_pool, meta)
    with pytest.raises(ValueError, match="K pool has the shape .* is not contiguous"):
        paged_decode(q, k_pool.transpose(1, 2), v_pool, meta)


@pytest.mark.parametrize("attend", [paged_decode, paged_prefill])
@pytest.mark.parametrize("name", ["v_pool", "out", "seq_lens", "query_start_loc"])
def test_what_a_kernel_reads_by_its_shape_alone_must_be_contiguous(attend, name):
    """Read as it lies in memory it would be the wrong numbers, without an error."""
    case = paged([(1, 5), (1, 9)])
    given = {"v_pool": case.v_pool, "out": case.out}
    given |= {"seq_lens": case.meta.seq_lens, "query_start_loc": case.meta.query_start_loc}
    given[name] = given[name].repeat_interleave(2, dim=0)[::2]
    meta = AttentionMeta(given["query_start_loc"], given["seq_lens"], case.meta.block_tables)
    with pytest.raises(ValueError, match=f"{name} .* is not contiguous"):
        attend(case.q, case.k_pool, given["v_pool"], meta, out=given["out"])


@pytest.mark.parametrize("attend", [paged_decode, paged_prefill])
def test_tables_may_be_a_part_of_larger_ones(attend):
    case = paged([(1, 5), (1, 9)])
    wide = torch.full((2, 20), -1)
    wide[:, 4::2][:, : case.meta.block_tables.shape[1]] = case.meta.block_tables
    tables = wide[:, 4::2][:, : case.meta.block_tables.shape[1]]
    meta = AttentionMeta(case.meta.query_start_loc, case.meta.seq_lens, tables)
    case.assert_right(*attend(case.q, case.k_pool, case.v_pool, meta))
