"""Cases from the field about kernels (numbers as in the course's list), for Triton's."""

from __future__ import annotations

import importlib.util
import inspect
import linecache

import pytest

pytest.importorskip("triton", reason="triton has wheels for Linux only")

import torch
from grid import config
from paged import EMPTY, NAN, assert_only_nan_around, paged

from minipaged.kernels import triton_common
from minipaged.kernels.meta import AttentionMeta
from minipaged.kernels.triton_attention import merge_splits, paged_decode, paged_prefill
from minipaged.kernels.triton_backend import copy_blocks, write_kv

ATTEND = pytest.mark.parametrize("attend", [paged_decode, paged_prefill])


def one_query(blocks, keys, index=torch.int64):
    """Metadata of one sequence with one query, whose blocks are `blocks`."""
    return AttentionMeta(
        *(torch.tensor(value, dtype=index) for value in ([0, 1], [keys], [list(blocks)]))
    )


PROBE = """

@triton.jit
def probe(table, out, TILE: tl.constexpr):
    keys = tl.arange(0, TILE)
    slots = find_slots(table, keys, keys < 16, 16)
    tl.store(out + keys, slots)
    tl.store(out + TILE + keys, k_offsets(slots, 0, 0, 16, 8, 128, 0))
"""


def offsets(folder, source, block_id, index):
    """Slot and K offset of a block's start, computed by the device code `source`."""
    path = folder / "probed.py"
    path.write_text(source + PROBE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("probed", path)
    module = importlib.util.module_from_spec(spec)
    linecache.checkcache(str(path))
    spec.loader.exec_module(module)
    out = torch.zeros(2, 16, dtype=torch.int64)
    module.probe[(1,)](torch.tensor([block_id], dtype=index), out, TILE=16)
    return out[:, 0].tolist()


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_case_30_offsets_past_32_bits(index, tmp_path):
    """Without the cast, a table of 32 bits makes the same arithmetic wrap."""
    source = inspect.getsource(triton_common)
    assert offsets(tmp_path, source, 131_072, index) == [2**21, 2**31]
    assert offsets(tmp_path, source, 2**27, index) == [2**31, 2**41]
    narrow = source.replace("other=0).to(tl.int64)", "other=0)")
    assert narrow != source
    got = [offsets(tmp_path, narrow, block_id, index) for block_id in (131_072, 2**27)]
    wrapped, right = [[2**21, -(2**31)], [-(2**31), 0]], [[2**21, 2**31], [2**31, 2**41]]
    assert got == (wrapped if index is torch.int32 else right)


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_case_30_a_block_past_two_billion_numbers(index):
    """131,073 blocks are 4 GiB of addresses, and only the pages that are touched take memory."""
    try:
        pool = EMPTY(131_073, 16, 8, 128, dtype=torch.float16)
    except RuntimeError as error:
        pytest.skip(f"4 GiB of addresses cannot be had: {error}")
    assert pool[131_072].storage_offset() == 2**31
    rng = torch.Generator().manual_seed(0)
    k = torch.randn(16, 8, 128, generator=rng).half()
    slots = 131_072 * 16 + torch.arange(16)
    write_kv(k, k, pool, pool, slots.to(index))
    assert torch.equal(pool[131_072], k)
    copy_blocks(pool, [(131_072, 3)])
    assert torch.equal(pool[3], k)
    pool[131_072] = NAN
    copy_blocks(pool, [(3, 131_072)])
    assert torch.equal(pool[131_072], k)
    q = torch.randn(1, 8, 128, generator=rng).half()
    far, near = one_query([131_072], 16, index), one_query([3], 16, index)
    for attend in (paged_decode, paged_prefill):
        expected, _ = attend(q, pool, pool, near)
        assert expected.isfinite().all() and expected.abs().max() > 0.1
        assert torch.equal(attend(q, pool, pool, far)[0], expected)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dim", [80, 96])
def test_case_31_head_dim_not_a_power_of_two(dim, packed):
    """The padding of a head is the next head's memory: neither read into it nor written."""
    case = paged([(1, 21), (4, 9)], dim=dim, packed=packed)
    out, _ = paged_decode(*case.inputs, out=case.out)
    paged_prefill(*case.inputs, min_queries=2, out=out)
    case.assert_right(out, case.expected_lse.float())
    assert_only_nan_around(out)
    # a head that is NaN is NaN alone
    case.v_pool.view(-1, 2, dim)[:, 1] = NAN
    out, _ = paged_prefill(*case.inputs)
    assert out[:, :3].isfinite().all() and out[:, 3:].isnan().all()
    # storing one head of all leaves the heads beside it
    k_pool, v_pool = torch.full((2, 2, 4, 1, dim), NAN)
    write_kv(*torch.randn(2, 1, 1, dim), k_pool, v_pool, torch.tensor([2]))
    for pool in (k_pool, v_pool):
        flat = pool.view(8, dim)
        assert flat[2].isfinite().all() and flat[[0, 1, 3, 4, 5, 6, 7]].isnan().all()


@ATTEND
def test_case_32_query_heads_that_share_a_kv_head(attend):
    q = torch.randn(1, 48, 32)
    pool = torch.zeros(2, 4, 2, 32)
    v_pool = torch.arange(2.0).view(1, 1, 2, 1).expand_as(pool).contiguous()
    out, _ = attend(q, pool, v_pool, one_query([1, 0], 6))
    assert (out[0, :24] == 0).all() and (out[0, 24:] == 1).all()
    for heads in (33, 3):
        with pytest.raises(ValueError, match=f"{heads} query heads cannot share 2 KV heads"):
            attend(q[:, :1].repeat(1, heads, 1), pool, v_pool, one_query([1, 0], 6))


@ATTEND
@pytest.mark.parametrize("packed", [False, True])
def test_case_33_nan_in_slots_that_nobody_wrote(attend, packed):
    case = paged([(1, 5)], block_size=4, packed=packed)
    last = case.v_pool[int(case.meta.block_tables[0, 1])]
    assert last[0].isfinite().all() and last[1:].isnan().all()
    out, lse = attend(*case.inputs)
    assert out.isfinite().all()
    case.assert_right(out, lse)


@pytest.mark.parametrize("split_size", [None, 16])
@ATTEND
def test_case_34_rows_of_length_0(attend, split_size):
    case = paged([(1, 5), (1, 0), (1, 3)], block_size=16)
    options = {"config": config(16, True)}
    if attend is paged_decode:
        options["split_size"] = split_size
    out, lse = attend(*case.inputs, out=case.out, **options)
    assert (out[1] == 0).all() and (lse[1] == float("-inf")).all()
    case.assert_right(out, lse)


@ATTEND
def test_case_35_a_block_table_that_is_looked_at(attend):
    pool = torch.zeros(4, 4, 1, 32)
    v_pool = torch.arange(4.0).view(4, 1, 1, 1).expand_as(pool).contiguous()
    out, lse = attend(torch.ones(1, 1, 32), pool, v_pool, one_query([3, 1], 8))
    torch.testing.assert_close(out, torch.full((1, 1, 32), 2.0), rtol=0, atol=1e-6)
    torch.testing.assert_close(lse, torch.full((1, 1), 8.0).log(), rtol=0, atol=1e-6)


def test_case_36_splits_without_a_token():
    parts = torch.tensor([3.0, NAN]).view(1, 2, 1, 1).repeat(2, 1, 1, 16)
    none = float("-inf")
    part_lse = torch.tensor([[2.0, 0.0], [0.0, 0.0]]).log().view(2, 2, 1)  # ln 2, then -inf
    out, lse = torch.full((2, 1, 16), NAN), torch.full((2, 1), NAN)
    merge_splits(parts, part_lse, torch.tensor([0, 1, 2]), out, lse)
    assert (out[0] == 3.0).all()
    torch.testing.assert_close(lse[0, 0], torch.tensor(2.0).log(), rtol=0, atol=0)
    assert (out[1] == 0.0).all() and lse[1, 0] == none


@pytest.mark.filterwarnings("ignore:All-NaN slice")
@pytest.mark.parametrize(
    ("dtype", "packed"), [(torch.float32, False), (torch.float16, True), (torch.bfloat16, False)]
)
def test_case_37_the_same_result_in_any_batch(dtype, packed):
    """Alone the row is cut into three pieces, beside a longer one into six; first and last."""
    keys = 37
    lengths = [(1, keys), (1, 75), (1, 0), (3, 9), (1, 1), (1, 37), (0, 4), (1, 16)]
    case = paged(lengths, dtype=dtype, packed=packed, group=2, kv_heads=1)
    options = {"split_size": 16, "config": config(16, True)}
    alone = one_query(case.meta.block_tables[0].tolist()[: -(-keys // 4)], keys)
    expected, said = paged_decode(case.q[:1], case.k_pool, case.v_pool, alone, **options)
    assert expected.isfinite().all()
    others = torch.ones(len(case.v_pool), dtype=torch.bool)
    others[alone.block_tables[0]] = False
    for content in (6e4, NAN):
        case.v_pool[others] = content
        case.k_pool[others] = content
        out, lse = paged_decode(*case.inputs, **options)
        assert torch.equal(out[:1], expected) and torch.equal(lse[:1], said)
    backwards = AttentionMeta(
        torch.arange(3), torch.tensor([75, keys]), case.meta.block_tables[[1, 0]]
    )
    out, lse = paged_decode(case.q[[1, 0]], case.k_pool, case.v_pool, backwards, **options)
    assert torch.equal(out[1:], expected) and torch.equal(lse[1:], said)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_case_37_for_chunks(dtype):
    """A query of a prompt has the same bits whatever chunk it comes in, and whatever is beside it.

    Every tile of keys starts at a multiple of the tile, and one that a row sees nothing of leaves
    the row as it is, to the bit.
    """
    case = paged([(40, 40), (5, 9), (1, 3)], dtype=dtype, group=3, kv_heads=1)
    tiles = config(16, True)
    whole, whole_lse = paged_prefill(*case.inputs, config=tiles)
    for first, end in ((0, 1), (0, 17), (7, 31), (39, 40)):
        meta = AttentionMeta(
            torch.tensor([0, end - first]), torch.tensor([end]), case.meta.block_tables[:1]
        )
        chunk = case.q[first:end].clone()
        out, lse = paged_prefill(chunk, case.k_pool, case.v_pool, meta, config=tiles)
        assert torch.equal(out, whole[first:end])
        assert torch.equal(lse, whole_lse[first:end])
