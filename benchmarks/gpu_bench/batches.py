"""Pools, block tables and queries to measure with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from gpu_bench.figures import Heads, bytes_moved, rotations
from minipaged.kernels.layouts import pack_width
from minipaged.kernels.meta import AttentionMeta


class Batch(NamedTuple):
    """One decode step over full contexts, several times in different blocks of the same pools.

    q [B, H, D]; metas: one for each working set; dense: for each its K and V as [B, S, KV, D],
    the same memory read as if it were contiguous. num_bytes: what one step moves.
    """

    q: Tensor
    k_pool: Tensor
    v_pool: Tensor
    metas: list[AttentionMeta]
    dense: list[tuple[Tensor, Tensor]]
    heads: Heads
    num_bytes: int


class Pools:
    """Two stretches of memory that every batch cuts its pools out of: allocated and filled once.

    l2_bytes: of the card; decides how many working sets a batch needs. shuffled: whether a
    sequence's blocks lie anywhere in the pool (as after hours of serving).
    """

    def __init__(self, device: torch.device, l2_bytes: int) -> None:
        self.device, self.l2_bytes = device, l2_bytes
        self._flat: dict[torch.dtype, tuple[Tensor, Tensor]] = {}

    def fits(self, heads: Heads, batch: int, context: int, dtype: torch.dtype) -> bool:
        """Whether there is memory for this batch. A CPU is taken to have enough for a dry run."""
        if self.device.type != "cuda":
            return True
        wanted = 2 * self.numel(heads, batch, context, dtype) * dtype.itemsize
        held = sum(2 * k.nbytes for k, _ in self._flat.values())
        free, _ = torch.cuda.mem_get_info(self.device)
        idle = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return wanted + 2**31 < free + idle + held

    def numel(self, heads: Heads, batch: int, context: int, dtype: torch.dtype) -> int:
        """Numbers in the K pool of a batch with all its working sets."""
        return self._copies(heads, batch, context, dtype) * batch * context * heads.kv * heads.dim

    def batch(
        self,
        heads: Heads,
        batch: int,
        context: int,
        dtype: torch.dtype,
        block_size: int = 16,
        *,
        packed: bool = False,
    ) -> Batch:
        """A batch; context is a multiple of block_size. What the pools hold is random.

        A packed K pool is the same memory under another shape: only the addresses matter here.
        """
        copies = self._copies(heads, batch, context, dtype)
        a_set = batch * context // block_size
        k_flat, v_flat = self._room(self.numel(heads, batch, context, dtype), dtype)
        shape = (copies * a_set, block_size, heads.kv, heads.dim)
        x = pack_width(dtype)
        k_shape = (shape[0], heads.kv, heads.dim // x, block_size, x) if packed else shape
        blocks = torch.randperm(shape[0], device=self.device)
        dense_shape = (copies, batch, context, heads.kv, heads.dim)
        dense = zip(k_flat.view(dense_shape), v_flat.view(dense_shape), strict=True)
        return Batch(
            torch.randn(batch, heads.query, heads.dim, device=self.device).to(dtype),
            k_flat.view(k_shape),
            v_flat.view(shape),
            [decode_meta([context] * batch, table) for table in blocks.view(copies, batch, -1)],
            list(dense),
            heads,
            bytes_moved(heads, [context] * batch, block_size, dtype.itemsize),
        )

    def free(self) -> None:
        """Give the memory back."""
        self._flat.clear()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _copies(self, heads: Heads, batch: int, context: int, dtype: torch.dtype) -> int:
        one = 2 * batch * context * heads.kv * heads.dim * dtype.itemsize
        return rotations(one, self.l2_bytes)

    def _room(self, numel: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        held = self._flat.get(dtype)
        if held is None or held[0].numel() < numel:
            held = None
            self.free()  # one dtype at a time: the largest batch needs most of the card
            k, v = (torch.empty(numel, dtype=dtype, device=self.device) for _ in range(2))
            self._flat[dtype] = held = (k.normal_(), v.normal_())
        return held[0][:numel], held[1][:numel]


def decode_meta(seq_lens: Sequence[int], table: Tensor) -> AttentionMeta:
    """One query for each sequence."""
    return meta_of([1] * len(seq_lens), seq_lens, table)


def meta_of(queries: Sequence[int], seq_lens: Sequence[int], table: Tensor) -> AttentionMeta:
    """queries, seq_lens: of each sequence; table [B, blocks]. On the table's device, int64."""
    starts = torch.tensor([0, *queries]).cumsum(0)
    lens = torch.tensor(list(seq_lens), dtype=torch.int64)
    return AttentionMeta(starts.to(table.device), lens.to(table.device), table.contiguous())
