"""The shared pieces of device code alone, and what the kernels read: no more than needed."""

from __future__ import annotations

import pytest

pytest.importorskip("triton", reason="triton has wheels for Linux only")

import torch
import triton
import triton.language as tl
from grid import config
from paged import NAN, paged

from minipaged.kernels.triton_attention import paged_decode, paged_prefill, query_tiles
from minipaged.kernels.triton_common import add_tile, load_kv


@triton.jit
def load_probe(k_pool, v_pool, slots, seen, k_out, v_out, X: tl.constexpr):
    keys, dims = tl.arange(0, 16), tl.arange(0, 32)
    at = tl.load(slots + keys)
    k, v = load_kv(k_pool, v_pool, at, tl.load(seen + keys) != 0, 1, dims, 4, 2, 24, X)
    inside = keys[:, None] * 32 + dims[None, :]
    tl.store(k_out + inside, k)
    tl.store(v_out + inside, v)


def test_what_is_not_seen_is_loaded_as_0():
    k_pool, v_pool = torch.full((2, 4, 4, 2, 24), NAN)
    slots = torch.arange(16)
    seen = (slots % 3 == 0).int()
    for pool in (k_pool, v_pool):
        pool.view(16, 2, 24)[seen.bool(), 1] = 2.0
    k, v = torch.full((2, 16, 32), NAN)
    load_probe[(1,)](k_pool, v_pool, slots, seen, k, v, X=0)
    for got in (k, v):
        assert (got[seen.bool(), :24] == 2).all() and (got[:, 24:] == 0).all()
        assert (got[~seen.bool()] == 0).all()


@triton.jit
def tile_probe(q, k, v, seen, m, total, acc):
    rows, dims = tl.arange(0, 16), tl.arange(0, 16)
    at = rows[:, None] * 16 + dims[None, :]
    new_m, new_total, new_acc = add_tile(
        tl.load(q + at), tl.load(k + at), tl.load(v + at), tl.load(seen + at) != 0, 1.0,
        tl.load(m + rows), tl.load(total + rows), tl.load(acc + at), False,
    )  # fmt: skip
    tl.store(m + rows, new_m)
    tl.store(total + rows, new_total)
    tl.store(acc + at, new_acc)


def test_a_row_that_sees_nothing_of_a_tile_keeps_what_it_has():
    """Also one that has not seen any key yet: -inf - -inf would make it NaN."""
    q, k, v = torch.randn(3, 16, 16)
    seen = torch.zeros(16, 16, dtype=torch.int32)
    seen[2:, :5] = 1
    m, total, acc = torch.randn(16), torch.rand(16), torch.randn(16, 16)
    m[0], total[0], acc[0] = float("-inf"), 0.0, 0.0
    before = m.clone(), total.clone(), acc.clone()
    tile_probe[(1,)](q, k, v, seen, m, total, acc)
    for now, then in zip((m, total, acc), before, strict=True):
        assert torch.equal(now[:2], then[:2])
        assert now.isfinite()[2:].all() and not torch.equal(now[2:], then[2:])


def test_decode_reads_each_key_once_whatever_the_group(watched):
    case = paged([(1, 70), (1, 21)], group=8)
    for size in (16, 32, 96):
        watched.reads.clear()
        paged_decode(*case.inputs, split_size=size, config=config(16, True))
        for pool in (case.k_pool, case.v_pool):
            assert watched.reads[pool.data_ptr()] == (70 + 21) * 2 * 32


def test_a_piece_takes_no_longer_than_its_keys(watched):
    """Ten pieces of a tile each are ten times the work of a row that is one tile."""

    def calls(keys):
        case = paged([(1, keys)], kv_heads=1, block_size=16)
        case.meta.block_tables.resize_(1, keys // 16)
        watched.calls = 0
        paged_decode(*case.inputs, split_size=16, config=config(16, True))
        return watched.calls

    one, merge = calls(16), 3 * (2 + 10 * 3)  # a program a head: two of starts, three of a piece
    assert one < 20
    assert calls(160) == 10 * one + merge


def test_a_tile_of_queries_reads_the_keys_up_to_its_last(watched):
    case = paged([(40, 40)], kv_heads=1, group=4)
    paged_prefill(*case.inputs, config=config(16, True))  # tiles of four queries
    assert watched.reads[case.k_pool.data_ptr()] == sum(range(4, 41, 4)) * 32


def test_tiles_of_queries_may_run_in_any_order():
    """A group of 3 leaves a row of 16 over: it is nobody's, and not the next tile's first."""
    case = paged([(12, 30), (1, 4), (7, 7)], group=3)
    case.meta.memo["triton tiles", 5, 1] = tuple(
        part.flip(0) for part in query_tiles(case.meta.query_start_loc, 5)
    )
    assert len(case.meta.memo["triton tiles", 5, 1][0]) == 6
    case.assert_right(*paged_prefill(*case.inputs, config=config(16, True)))
    assert len(case.meta.memo) == 1
