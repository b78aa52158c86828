"""Pools with a few sequences in them and NaN everywhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from gpu_bench.batches import meta_of
from gpu_bench.figures import Heads
from minipaged.kernels.layouts import pack_k
from minipaged.kernels.meta import AttentionMeta

BITS = {2: torch.int16, 4: torch.int32}


class Case(NamedTuple):
    """q [T, H, D]; k, v [N, KV, D], all tokens of all sequences, and the slots [N] that they are
    in; k_pool, v_pool in NHD, NaN in every other slot; meta: the rest of its tables names a block
    of NaN."""

    q: Tensor
    k: Tensor
    v: Tensor
    slots: Tensor
    k_pool: Tensor
    v_pool: Tensor
    meta: AttentionMeta

    def k_as(self, packed: bool) -> Tensor:
        """The K pool in either layout."""
        return pack_k(self.k_pool) if packed else self.k_pool


def make_case(
    heads: Heads,
    dtype: torch.dtype,
    block_size: int,
    queries: Sequence[int],
    lens: Sequence[int],
    device: torch.device,
    *,
    first_block: int = 0,
    num_blocks: int | None = None,
) -> Case:
    """Sequences of `lens` keys, the last `queries` of which ask (one of a sequence without keys).

    first_block, num_blocks: use only blocks from first_block on, of a pool of num_blocks; the
    pool is then left as it was allocated, but for the blocks in use and those 2^31 numbers below.
    """
    counts = [-(-length // block_size) for length in lens]
    used = sum(counts) + 2
    last = first_block + used
    order = (torch.randperm(used) + first_block).tolist()
    nowhere = order.pop()  # a block of NaN
    table = torch.full((len(lens), max([*counts, 1]) + 2), nowhere)
    rows = [[order.pop() for _ in range(count)] for count in counts]
    for row, blocks in enumerate(rows):
        table[row, : len(blocks)] = torch.tensor(blocks, dtype=torch.int64)
    slots = torch.tensor(
        [
            blocks[i // block_size] * block_size + i % block_size
            for blocks, length in zip(rows, lens, strict=True)
            for i in range(length)
        ],
        dtype=torch.int64,
    ).to(device)
    shape = (num_blocks or last, block_size, heads.kv, heads.dim)
    pools = [torch.empty(shape, dtype=dtype, device=device) for _ in range(2)]
    k, v = (torch.randn(len(slots), heads.kv, heads.dim, device=device).to(dtype) for _ in range(2))
    wrapped = 2**31 // (block_size * heads.kv * heads.dim)
    for pool, values in zip(pools, (k, v), strict=True):
        for low in {first_block, max(0, first_block - wrapped)}:
            pool[low : low + used] = float("nan")
        pool.view(-1, heads.kv, heads.dim)[slots] = values
    q = torch.randn(sum(queries), heads.query, heads.dim, device=device).to(dtype)
    return Case(q, k, v, slots, pools[0], pools[1], meta_of(queries, lens, table.to(device)))


def decode_case(
    heads: Heads, dtype: torch.dtype, block_size: int, lens: Sequence[int], device: torch.device
) -> Case:
    """One query a sequence."""
    return make_case(heads, dtype, block_size, [1] * len(lens), lens, device)


def mixed_case(
    heads: Heads, dtype: torch.dtype, block_size: int, lens: Sequence[int], device: torch.device
) -> Case:
    """Chunks (whole prompts, and the end of one) beside decodes, in turn."""
    queries = [
        1 if row % 2 or not length else max(1, length - row) for row, length in enumerate(lens)
    ]
    return make_case(heads, dtype, block_size, queries, lens, device)


def differing(a: Tensor, b: Tensor) -> int:
    """Numbers whose bits differ; NaN equals itself."""
    kind = BITS[a.dtype.itemsize]
    return int((a.contiguous().view(kind) != b.contiguous().view(kind)).sum())
