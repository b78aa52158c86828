"""Launch the attention kernels: decode in pieces with their merge, and chunks.

The functions take tensors as paged_attention of reference.py does, and give the same results.
"""

from __future__ import annotations

import torch
from torch import Tensor

from minipaged.kernels.configs import KernelConfig, decode_config, prefill_config
from minipaged.kernels.constants import MERGE_OPTIONS, decode_rows, merge_constants, prefill_rows
from minipaged.kernels.fit import require_contiguous, require_like
from minipaged.kernels.meta import AttentionMeta
from minipaged.kernels.splits import choose_split_size, num_splits
from minipaged.kernels.triton_decode import decode_kernel
from minipaged.kernels.triton_launch import Launch, on_device, prepare
from minipaged.kernels.triton_merge import merge_kernel
from minipaged.kernels.triton_prefill import prefill_kernel

MAX_GRID = 65_535
"""Programs of a launch along its second and third side at most (CUDA)."""

INTERPRETER_SMS = 8
"""Multiprocessors that the rule for splitting assumes where there is no card."""


def paged_decode(
    q: Tensor,
    k_pool: Tensor,
    v_pool: Tensor,
    meta: AttentionMeta,
    *,
    split_size: int | None = None,
    config: KernelConfig | None = None,
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """What the one query of each sequence reads -> (out [T, H, D], natural LSE [T, H] float32).

    k_pool: in either layout of layouts.py; v_pool [num_blocks, block_size, KV, D]. Rows of
    sequences with several queries are not written: they are paged_prefill's.
    split_size: keys in a piece, a multiple of the configuration's tile; None lets
    choose_split_size decide by the batch. With a fixed size a row's result is the same to the
    last bit, whatever else is in the batch.
    config: in place of the shipped table's. out: to write to, contiguous; a new one otherwise.
    ValueError as from paged_attention, for what is not contiguous (pools, out, query_start_loc,
    seq_lens), and for a split_size that is no such multiple. Cost: each K and V of the sequences
    is read once; a piece writes D + 1 float32 numbers a head.
    """
    launch = prepare(q, k_pool, v_pool, config or decode_config)
    out, lse = _outputs(launch, meta, out)
    tables = meta.block_tables.contiguous()
    num_seqs, longest = len(tables), tables.shape[1] * launch.shape.block_size
    if not num_seqs:
        return out, lse
    size = _split_size(split_size, num_seqs, longest, launch)
    pieces = num_splits(longest, size)
    parts, part_lse = (out, lse) if pieces == 1 else _room(q, num_seqs, pieces)
    with on_device(q):
        decode_kernel[(num_seqs, launch.shape.kv_heads, pieces)](
            launch.q, k_pool, v_pool, tables, meta.seq_lens, meta.query_start_loc,
            parts, part_lse, launch.scale, size, tables.shape[1],
            **decode_rows(launch.group), **launch.constants, **launch.options,
        )  # fmt: skip
    if pieces > 1:
        merge_splits(parts, part_lse, meta.query_start_loc, out, lse)
    return out, lse


def merge_splits(
    parts: Tensor, part_lse: Tensor, query_start_loc: Tensor, out: Tensor, lse: Tensor
) -> None:
    """Merge parts [B, splits, H, D] by part_lse [B, splits, H], both float32, into out [T, H, D]
    and lse [T, H], for the B sequences that have one query. All contiguous.

    A piece with LSE -inf counts nothing, whatever it holds; a row whose pieces all do becomes 0
    with LSE -inf.
    """
    _, pieces, heads, dim = parts.shape
    with on_device(out):
        merge_kernel[(len(query_start_loc) - 1, heads)](
            parts, part_lse, out, lse, query_start_loc, pieces,
            **merge_constants(dim), **MERGE_OPTIONS,
        )  # fmt: skip


def paged_prefill(
    q: Tensor,
    k_pool: Tensor,
    v_pool: Tensor,
    meta: AttentionMeta,
    *,
    min_queries: int = 1,
    config: KernelConfig | None = None,
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """What all queries read, chunks and decodes in one launch -> (out [T, H, D], LSE [T, H]).

    min_queries: sequences with fewer are not written (2: the decodes are paged_decode's). All else
    as paged_decode. Cost: K and V are read once per tile of queries.
    """
    launch = prepare(q, k_pool, v_pool, config or prefill_config)
    out, lse = _outputs(launch, meta, out)
    rows = prefill_rows(launch.group, launch.config)
    key = ("triton tiles", rows["QUERIES"], min_queries)
    if key not in meta.memo:
        meta.memo[key] = query_tiles(meta.query_start_loc, rows["QUERIES"], min_queries)
    tile_seq, tile_first = meta.memo[key]
    tables = meta.block_tables.contiguous()
    if len(tile_seq):
        with on_device(q):
            prefill_kernel[(len(tile_seq), launch.shape.kv_heads)](
                launch.q, k_pool, v_pool, tables, meta.seq_lens, meta.query_start_loc,
                tile_seq, tile_first, out, lse, launch.scale, tables.shape[1],
                **rows, **launch.constants, **launch.options,
            )  # fmt: skip
    return out, lse


def query_tiles(query_start_loc: Tensor, size: int, min_queries: int = 1) -> tuple[Tensor, Tensor]:
    """Cut each sequence's queries into tiles of `size` -> (sequence, first query) of each tile.

    query_start_loc [B + 1]; both results [tiles] int64, on its device. Sequences with fewer than
    min_queries have none. Waits for the device once, as the number of tiles has to be known.
    """
    lengths = query_start_loc.diff()
    counts = (lengths + size - 1) // size * (lengths >= min_queries)
    seq = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
    first = torch.arange(len(seq), device=seq.device) - (counts.cumsum(0) - counts)[seq]
    return seq, first * size


def _outputs(launch: Launch, meta: AttentionMeta, out: Tensor | None) -> tuple[Tensor, Tensor]:
    """What to write to: out, or a new one, and the LSE. ValueError if a tensor does not fit."""
    q = launch.q
    out = torch.empty_like(q) if out is None else out
    require_like(out, q)
    require_contiguous(query_start_loc=meta.query_start_loc, seq_lens=meta.seq_lens)
    return out, q.new_empty(q.shape[:2], dtype=torch.float32)


def _split_size(given: int | None, num_seqs: int, longest: int, launch: Launch) -> int:
    tile = launch.config.tile
    if given is None:
        sms = _num_sms(launch.q.device)
        kv_heads = launch.shape.kv_heads
        return choose_split_size(num_seqs, kv_heads, longest, tile=tile, num_sms=sms)
    if given < 1 or given % tile:
        raise ValueError(f"split_size is {given!r}: give a multiple of the tile of {tile} keys")
    if num_splits(longest, given) > MAX_GRID:
        raise ValueError(
            f"split_size {given} cuts {longest} keys into {num_splits(longest, given)} pieces, and "
            f"a launch holds {MAX_GRID}: take a larger one"
        )
    return given


def _num_sms(device: torch.device) -> int:
    if device.type != "cuda":
        return INTERPRETER_SMS
    return torch.cuda.get_device_properties(device).multi_processor_count


def _room(q: Tensor, num_seqs: int, pieces: int) -> tuple[Tensor, Tensor]:
    """For the outputs and LSEs of all pieces, in float32: what is merged must not be rounded."""
    _, heads, dim = q.shape
    parts = q.new_empty(num_seqs, pieces, heads, dim, dtype=torch.float32)
    return parts, q.new_empty(num_seqs, pieces, heads, dtype=torch.float32)
