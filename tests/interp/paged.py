"""Paged inputs with poison wherever nobody wrote, and what attention must make of them.

Pools, queries and outputs lie in the middle of larger tensors: what is just outside of them is NaN
too, so that a wrong address is seen in either direction.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor

from minipaged.kernels.layouts import pack_k, pack_width
from minipaged.kernels.meta import AttentionMeta
from minipaged.kernels.reference import paged_attention, slots_of

NAN = float("nan")
HUGE, NONE = 2**40, -1
"""What stands in a table past a sequence's last block: to read either is to leave the pool."""

EMPTY = torch.empty
"""torch.empty before conftest.py poisons it, for what is too large to be filled."""

ROUNDING = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
"""The largest relative error of one rounding: half a unit in the last of 24, 11 or 8 bits."""

SUMS = 16 * ROUNDING[torch.float32]
"""Relative error allowed to float32 sums.

A score sums up to 128 products and an output up to a few hundred weights; errors of n roundings
that go either way grow as sqrt(n), which is 11 for 128. Found with the pairwise shapes: 4 at most.
"""


@dataclass(frozen=True)
class Paged:
    """Inputs of one step, and what is to come out.

    out, lse: NaN, to be written. expected [T, H, D] and expected_lse [T, H]: float64.
    """

    q: Tensor
    k_pool: Tensor
    v_pool: Tensor
    meta: AttentionMeta
    out: Tensor
    expected: Tensor
    expected_lse: Tensor

    @property
    def inputs(self) -> tuple[Tensor, Tensor, Tensor, AttentionMeta]:
        return self.q, self.k_pool, self.v_pool, self.meta

    def assert_right(self, out: Tensor, lse: Tensor, written: Tensor | None = None) -> None:
        """out and lse are as expected in the rows `written` [T] bool, and untouched elsewhere.

        An output is a weighted mean of values: with weights and result rounded to the dtype it is
        wrong by two roundings of the largest value at most, and by what the float32 sums lose.
        """
        written = torch.ones(len(self.q), dtype=torch.bool) if written is None else written
        assert out.dtype == self.q.dtype and lse.dtype == torch.float32
        assert out[~written].isnan().all() and lse[~written].isnan().all()
        largest = self.v_pool.nan_to_num().abs().max().item()
        allowed = largest * (2 * ROUNDING[self.q.dtype] + SUMS)
        close(out[written].double(), self.expected[written], allowed)
        finite = self.expected_lse[self.expected_lse.isfinite()].abs()
        close(
            lse[written].double(),
            self.expected_lse[written],
            SUMS * max(1.0, finite.max().item() if len(finite) else 1.0),
        )
        assert_only_nan_around(out)


def close(got: Tensor, expected: Tensor, allowed: float) -> None:
    torch.testing.assert_close(got, expected, rtol=0, atol=allowed)


def guarded(shape: tuple[int, ...], dtype: torch.dtype, guard: int = 2) -> Tensor:
    """NaN [shape], contiguous, with `guard` more rows of NaN before and behind it in memory."""
    return torch.full((shape[0] + 2 * guard, *shape[1:]), NAN, dtype=dtype)[guard:-guard]


def assert_only_nan_around(tensor: Tensor) -> None:
    """What `guarded` put around a tensor is as it was. Others have nothing around them."""
    whole = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
    begin = tensor.storage_offset()
    assert whole[:begin].isnan().all() and whole[begin + tensor.numel() :].isnan().all()


def written_slots(block_tables: Tensor, row: int, keys: int, block_size: int) -> Tensor:
    at = torch.arange(keys)
    return slots_of(block_tables, torch.full_like(at, row), at, block_size)


def paged(
    lengths: list[tuple[int, int]],
    *,
    block_size: int = 4,
    kv_heads: int = 2,
    group: int = 3,
    dim: int = 32,
    dtype: torch.dtype = torch.float32,
    packed: bool = False,
    seed: int = 0,
    spread: float = 1.0,
) -> Paged:
    """A step whose row b has lengths[b] = (queries, keys). Tables are shuffled.

    spread: standard deviation of the queries; large ones make one key outweigh the others.
    """
    rng = torch.Generator().manual_seed(seed)
    needed = [-(-keys // block_size) for _, keys in lengths]
    num_blocks = sum(needed) + 3
    order = torch.randperm(num_blocks, generator=rng)
    tables = torch.empty(len(lengths), max(needed) + 2, dtype=torch.int64)
    tables[0::2], tables[1::2] = NONE, HUGE
    shape = (num_blocks, block_size, kv_heads, dim)
    k_pool, v_pool = guarded(shape, dtype), guarded(shape, dtype)
    taken = 0
    for row, (_, keys) in enumerate(lengths):
        tables[row, : needed[row]] = order[taken : taken + needed[row]]
        taken += needed[row]
        slots = written_slots(tables, row, keys, block_size)
        for pool in (k_pool, v_pool):
            fresh = torch.randn(keys, kv_heads, dim, generator=rng)
            pool.view(-1, kv_heads, dim)[slots] = fresh.to(dtype)
    starts = torch.tensor([0, *itertools.accumulate(queries for queries, _ in lengths)])
    meta = AttentionMeta(starts, torch.tensor([keys for _, keys in lengths]), tables)
    q = guarded((int(starts[-1]), kv_heads * group, dim), dtype)
    q.copy_(torch.randn(q.shape, generator=rng) * spread)
    expected, lse = _expected(q, k_pool, v_pool, meta)
    if packed:
        k_pool = _packed(k_pool)
    return Paged(q, k_pool, v_pool, meta, guarded(q.shape, dtype), expected, lse)


def _packed(k_pool: Tensor) -> Tensor:
    packed = pack_k(k_pool)
    assert packed.shape[-1] == pack_width(k_pool.dtype)
    return guarded(packed.shape, packed.dtype).copy_(packed)


def _expected(q: Tensor, k_pool: Tensor, v_pool: Tensor, meta: AttentionMeta):
    """The torch reference in float64 on pools without poison, and the LSE of its scores."""
    tables = meta.block_tables.clamp(0, len(k_pool) - 1)
    clean = AttentionMeta(meta.query_start_loc, meta.seq_lens, tables)
    pools = [pool.double().nan_to_num() for pool in (k_pool, v_pool)]
    return paged_attention(q.double(), *pools, clean), _lse(q.double(), pools[0], clean)


def _lse(q: Tensor, k_pool: Tensor, meta: AttentionMeta) -> Tensor:
    group, lse = q.shape[1] // k_pool.shape[2], q.new_zeros(q.shape[:2])
    for row, keys in enumerate(meta.seq_lens.tolist()):
        start, end = meta.query_start_loc[row : row + 2].tolist()
        slots = written_slots(meta.block_tables, row, keys, k_pool.shape[1])
        k = k_pool.view(-1, *k_pool.shape[2:])[slots].repeat_interleave(group, dim=1)
        scores = torch.einsum("thd,shd->ths", q[start:end], k) / q.shape[2] ** 0.5
        position = torch.arange(keys - (end - start), keys)[:, None, None]
        hidden = torch.arange(keys) > position
        lse[start:end] = scores.masked_fill(hidden, float("-inf")).logsumexp(-1)
    return lse
