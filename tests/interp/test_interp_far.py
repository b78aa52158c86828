"""Offsets past 2^31 outside the pools: rows of queries, outputs and pieces. And what is refused."""

from __future__ import annotations

import pytest

pytest.importorskip("triton", reason="triton has wheels for Linux only")

import numpy as np
import torch
from paged import EMPTY
from triton.runtime.interpreter import InterpreterBuilder

from minipaged.kernels import triton_backend
from minipaged.kernels.configs import KernelConfig
from minipaged.kernels.constants import decode_rows, merge_constants, pool_constants
from minipaged.kernels.layouts import pool_shape
from minipaged.kernels.meta import AttentionMeta
from minipaged.kernels.triton_attention import merge_splits, paged_decode, paged_prefill
from minipaged.kernels.triton_backend import TritonAttention, copy_blocks, move_blocks, write_kv
from minipaged.kernels.triton_decode import decode_kernel
from minipaged.kernels.triton_launch import prepare
from minipaged.kernels.triton_merge import merge_kernel
from minipaged.kernels.triton_store import write_kernel

TOKEN = 2**21  # of 8 heads with 128 numbers: it begins at number 2^31
POOLS = [torch.randn(2, 16, 8, 128).half() for _ in "kv"]


def far(shape, dtype):
    """Memory by addresses alone: pages that nobody touches cost nothing."""
    try:
        return EMPTY(shape, dtype=dtype)
    except RuntimeError as error:
        pytest.skip(f"as many addresses cannot be had: {error}")


def meta(first, tables, keys=20, queries=1):
    return AttentionMeta(torch.tensor([first, first + queries]), torch.tensor([keys]), tables)


@pytest.mark.parametrize("attend", [paged_decode, paged_prefill])
def test_a_token_past_two_billion_numbers(attend):
    tables = torch.tensor([[1, 0]])
    near = torch.randn(1, 8, 128).half()
    expected, lse = attend(near, *POOLS, meta(0, tables))
    q = far((TOKEN + 1, 8, 128), torch.float16)
    q[TOKEN] = near[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            torch.Tensor,
            "new_empty",
            lambda t, *size, **how: EMPTY(*size, **{"dtype": t.dtype} | how),
        )
        got, got_lse = attend(q, *POOLS, meta(TOKEN, tables), out=far(q.shape, q.dtype))
    assert torch.equal(got[TOKEN], expected[0])
    assert torch.equal(got_lse[TOKEN], lse[0])


@pytest.fixture
def last_only(monkeypatch):
    """last_only(n): launches of one program along the first axis run program n - 1 of n, since a
    million programs would take an hour here."""

    def only(count):
        real = InterpreterBuilder.create_get_program_id
        handle = real.__globals__["TensorHandle"]

        def shifted(builder, axis):
            got = real(builder, axis)
            return got if axis else handle(got.data + np.int32(count - 1), got.dtype)

        monkeypatch.setattr(InterpreterBuilder, "create_get_program_id", shifted)

    return only


def starts_of_the_last(num_seqs):
    """query_start_loc of sequences of which the last alone has a query."""
    starts = torch.zeros(num_seqs + 1, dtype=torch.int64)
    starts[-1] = 1
    return starts


def test_a_merge_past_two_billion_numbers(last_only):
    num_seqs = TOKEN // 2 + 1
    parts, said = far((num_seqs, 2, 8, 128), torch.float32), far((num_seqs, 2, 8), torch.float32)
    parts[-1], said[-1] = torch.randn(2, 8, 128), torch.randn(2, 8)
    (out, lse), (right, right_lse) = ((torch.empty(1, 8, 128), torch.empty(1, 8)) for _ in range(2))
    merge_splits(parts[-1:].clone(), said[-1:].clone(), starts_of_the_last(1), right, right_lse)
    last_only(num_seqs)
    merge_kernel[(1, 8)](
        parts, said, out, lse, starts_of_the_last(num_seqs), 2, **merge_constants(128)
    )
    assert torch.equal(out, right) and torch.equal(lse, right_lse)


def test_pieces_past_two_billion_numbers(last_only):
    num_seqs = TOKEN // 2 + 1
    parts, said = far((num_seqs, 2, 8, 128), torch.float32), far((num_seqs, 2, 8), torch.float32)
    q, tables = torch.randn(1, 8, 128).half(), torch.tensor([[1, 0]])
    expected = paged_decode(q, *POOLS, meta(0, tables))[0]
    launch = prepare(q, *POOLS, KernelConfig(tile=16, num_warps=4, num_stages=1))
    keys = torch.full((num_seqs,), 20)
    last_only(num_seqs)
    decode_kernel[(1, 8, 2)](
        q, *POOLS, tables, keys, starts_of_the_last(num_seqs), parts, said, launch.scale, 16, 0,
        **decode_rows(1), **launch.constants,
    )  # fmt: skip
    out, lse = torch.empty(1, 8, 128), torch.empty(1, 8)
    merge_kernel[(1, 8)](
        parts, said, out, lse, starts_of_the_last(num_seqs), 2, **merge_constants(128)
    )
    torch.testing.assert_close(out.half(), expected, rtol=2e-3, atol=2e-3)


def test_a_stored_token_past_two_billion_numbers(last_only):
    k, slots = far((TOKEN + 1, 8, 128), torch.float16), far((TOKEN + 1,), torch.int64)
    k[TOKEN], slots[TOKEN] = torch.randn(8, 128).half(), 17
    pools = [torch.zeros(2, 16, 8, 128).half() for _ in "kv"]
    last_only(TOKEN + 1)
    write_kernel[(1, 8)](k, k, *pools, slots, **pool_constants(pool_shape(pools[0])))
    assert torch.equal(pools[0][1, 1], k[TOKEN]) and torch.equal(pools[1][1, 1], k[TOKEN])


def test_table_rows_past_two_billion_entries():
    width = 2**27
    tables = far((17, width), torch.int64)  # row 16 begins at entry 2^31
    tables[16, :2] = torch.tensor([1, 0])
    starts = torch.tensor([0] * 17 + [1])
    keys = torch.tensor([0] * 16 + [20])
    q = torch.randn(1, 8, 128).half()
    expected = paged_prefill(q, *POOLS, meta(0, torch.tensor([[1, 0]])))[0]
    many = AttentionMeta(starts, keys, tables)
    assert torch.equal(paged_prefill(q, *POOLS, many)[0], expected)
    one_piece = 2**31 - 64
    assert torch.equal(paged_decode(q, *POOLS, many, split_size=one_piece)[0], expected)


def test_decodes_take_the_decode_kernel_and_chunks_the_other(monkeypatch):
    taken = []
    for name in ("paged_decode", "paged_prefill"):
        real = getattr(triton_backend, name)
        monkeypatch.setattr(
            triton_backend, name, lambda *a, r=real, n=name, **o: (taken.append(n), r(*a, **o))[1]
        )
    tables = torch.tensor([[1, 0]])
    q = torch.randn(2, 8, 128).half()
    for attention, queries, names in (
        (TritonAttention(), 1, ["paged_decode"]),
        (TritonAttention(), 2, ["paged_prefill"]),
        (TritonAttention(64), 1, ["paged_decode"]),
        (TritonAttention(64), 2, ["paged_decode", "paged_prefill"]),
    ):
        attention(q[:queries], *POOLS, meta(0, tables, queries=queries))
        assert taken == names
        taken.clear()


K, SLOTS = torch.zeros(3, 2, 8), torch.tensor([5, 0, 2])
POOL = torch.zeros(2, 4, 2, 8)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: write_kv(K[:, :1], K[:, :1], POOL, POOL, SLOTS), "1 query heads cannot"),
        (lambda: write_kv(K, K, POOL, POOL, SLOTS[:2]), "with a slot each"),
        (lambda: write_kv(K.half(), K.half(), POOL, POOL, SLOTS), "use one dtype"),
        (lambda: write_kv(K, K, POOL, POOL, SLOTS.repeat(2)[::2]), "slot_mapping .* contiguous"),
        (lambda: write_kv(K, K, POOL, POOL[:1], SLOTS), "pools must be equal"),
        (lambda: copy_blocks(POOL.transpose(1, 2), [(0, 1)]), "not contiguous"),
        (lambda: move_blocks(POOL, POOL[:, :2].contiguous(), [(0, 1)]), "pools must be alike"),
        (lambda: move_blocks(POOL, POOL.half(), [(0, 1)]), "pools must be alike"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("attend", [paged_decode, paged_prefill])
def test_outputs_and_queries_that_do_not_fit(attend):
    q = torch.zeros(1, 8, 128).half()
    tables = torch.tensor([[1, 0]])
    with pytest.raises(ValueError, match="give one that is like q"):
        attend(q, *POOLS, meta(0, tables), out=torch.zeros(1, 128, 8).half())
    with pytest.raises(ValueError, match="give one that is like q"):
        attend(q, *POOLS, meta(0, tables), out=torch.zeros(1, 8, 128))
    with pytest.raises(ValueError, match="q must be"):
        attend(q[0], *POOLS, meta(0, tables))


def test_more_pieces_than_a_launch_holds():
    tables = torch.zeros(1, 300_000, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"75000 pieces, and a launch holds 65535"):
        paged_decode(torch.zeros(1, 8, 128).half(), *POOLS, meta(0, tables), split_size=64)
