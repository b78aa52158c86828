"""Storing keys and values, copying and moving blocks: exact, and nothing else is touched."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("triton", reason="triton has wheels for Linux only")

import torch
from grid import MAIN, OTHERS
from hypothesis import example, given, settings
from hypothesis import strategies as st
from paged import assert_only_nan_around, guarded
from pairwise import pairwise

from minipaged.kernels import reference, triton_backend
from minipaged.kernels.layouts import pack_width, unpack_k
from minipaged.kernels.triton_backend import COPY_CHUNK, copy_blocks, move_blocks, write_kv

STORE = pairwise(
    {name: MAIN[name] for name in ("block_size", "dim", "dtype")}
    | {"packed": OTHERS["packed"], "kv_heads": [1, 2, 3], "index": [torch.int64, torch.int32]}
)


@pytest.mark.parametrize("row", STORE, ids=lambda row: "-".join(map(str, row.values())))
def test_write_kv(row):
    block_size, dim, dtype, kv_heads = (
        row[name] for name in ("block_size", "dim", "dtype", "kv_heads")
    )
    shape = (5, block_size, kv_heads, dim)
    slots = torch.randperm(5 * block_size, generator=torch.Generator().manual_seed(1))[:4]
    x = pack_width(dtype)
    packed_shape = (5, kv_heads, dim // x, block_size, x)
    k_pool = guarded(packed_shape if row["packed"] else shape, dtype)
    v_pool = guarded(shape, dtype)
    k, v = (torch.randn(4, kv_heads, dim).to(dtype) for _ in "kv")
    write_kv(k, v, k_pool, v_pool, slots.to(row["index"]))
    expected = [torch.full(shape, float("nan"), dtype=dtype) for _ in "kv"]
    reference.write_kv(k, v, *expected, slots)
    same(unpack_k(k_pool) if row["packed"] else k_pool, expected[0])
    same(v_pool, expected[1])
    assert_only_nan_around(k_pool)
    assert_only_nan_around(v_pool)


def same(got, expected):
    torch.testing.assert_close(got, expected, rtol=0, atol=0, equal_nan=True)


def test_write_kv_of_nothing_and_of_strided_tensors():
    k_pool, v_pool = guarded((2, 4, 2, 32), torch.float32), guarded((2, 4, 2, 32), torch.float32)
    both = torch.randn(3, 2, 2, 32)  # K and V as a projection of both at once gives them
    none = torch.zeros(0, dtype=torch.int64)
    write_kv(both[:0, 0], both[:0, 1], k_pool, v_pool, none)
    assert k_pool.isnan().all() and v_pool.isnan().all()
    slots = torch.tensor([6, 0, 3])
    write_kv(both[:, 0], both[:, 1], k_pool, v_pool, slots)
    assert torch.equal(k_pool.view(8, 2, 32)[slots], both[:, 0])
    assert torch.equal(v_pool.view(8, 2, 32)[slots], both[:, 1])
    with pytest.raises(ValueError, match=r"v_pool \[2, 2, 4, 32\] .* is not contiguous"):
        write_kv(both[:, 0], both[:, 1], k_pool, v_pool.transpose(1, 2), slots)


copy = triton_backend._copy
BLOCKS = [(1, 1, 32), (4, 3, 64), (6, 2, 80), (16, 1, 64), (16, 2, 80), (33, 1, 32), (12, 3, 96)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_copies_and_moves_of_every_size_of_a_block(block, dtype):
    """Blocks below, at and above what one program moves, and no multiple of it."""
    pool = guarded((6, *block), dtype)
    pool.copy_(torch.randn(pool.shape))
    expected = pool.clone()
    pairs = [(0, 1), (2, 5), (1, 3), (4, 0)]
    reference.copy_blocks(expected, pairs)
    copy_blocks(pool, pairs)
    same(pool, expected)
    other = guarded((3, *block), dtype)
    move_blocks(pool, other, [(5, 0), (3, 2)])
    assert torch.equal(other[0], pool[5]) and torch.equal(other[2], pool[3])
    assert other[1].isnan().all()
    same(pool, expected)
    move_blocks(other, pool, [(2, 4)])
    assert torch.equal(pool[4], expected[3])
    for tensor in (pool, other):
        assert_only_nan_around(tensor)
    move_blocks(pool, other, [])
    copy_blocks(pool, [])


def test_the_sizes_above_are_on_all_sides_of_a_programs_share():
    sizes = [b * h * d for b, h, d in BLOCKS]
    assert min(sizes) < COPY_CHUNK and COPY_CHUNK in sizes and max(sizes) > 2 * COPY_CHUNK
    assert any(size > COPY_CHUNK and size % COPY_CHUNK for size in sizes)


@settings(max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=7), st.booleans())
@example([(0, 1), (2, 0)], True)
def test_chains_of_copies_are_as_if_one_after_another(pairs, backwards):
    """In whatever order the programs of one launch run; the interpreter takes the first first."""
    with pytest.MonkeyPatch.context() as patch:
        if backwards:
            patch.setattr(
                triton_backend,
                "_copy",
                lambda a, b, sources, targets: copy(a, b, sources[::-1], targets[::-1]),
            )
        _chain(pairs)


def _chain(pairs):
    pool = torch.arange(6.0).view(6, 1, 1, 1).repeat(1, 2, 1, 4)
    expected = list(range(6))
    for source, target in pairs:
        expected[target] = expected[source]
    copy_blocks(pool, pairs)
    assert (pool == torch.tensor(expected).view(6, 1, 1, 1)).all()


def test_store_then_copy_then_read_back_as_the_torch_backend_does():
    """A few steps of both backends on one pool each, the same pairs and slots."""
    rng = random.Random(3)
    pools = {name: guarded((8, 4, 2, 32), torch.float32) for name in ("torch", "triton")}
    values = {name: guarded((8, 4, 2, 32), torch.float32) for name in ("torch", "triton")}
    for _ in range(3):
        slots = torch.tensor(rng.sample(range(32), 5))
        k, v = torch.randn(2, 5, 2, 32)
        pairs = [(rng.randrange(8), rng.randrange(8)) for _ in range(4)]
        reference.write_kv(k, v, pools["torch"], values["torch"], slots)
        write_kv(k, v, pools["triton"], values["triton"], slots)
        for pool, name in ((pools, "torch"), (values, "torch")):
            reference.copy_blocks(pool[name], pairs)
        for pool in (pools, values):
            copy_blocks(pool["triton"], pairs)
            same(pool["triton"], pool["torch"])
