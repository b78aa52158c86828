"""Paged attention in plain torch: the meaning that every other attention backend must match.

Keys and values of all sequences lie in one pool [num_blocks, block_size, KV, D]; seen as one long
row of slots, token p of a sequence is in slot block_table[p // block_size] * block_size
+ p % block_size (Kwon et al. 2023, PagedAttention). Attention gathers each sequence's slots into a
rectangle and lets torch's scaled_dot_product_attention, which accumulates in float32, do the rest.

The queries are cut into tiles of a few neighbouring positions. A tile needs only the keys up to
its last query, and tiles with contexts of similar length share a rectangle, so neither one long
prompt nor one long context pads everybody else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from minipaged.kernels.fit import require_fit
from minipaged.kernels.layouts import pool_shape
from minipaged.kernels.meta import AttentionMeta
from minipaged.kernels.runs import independent_runs

TILE = 64
"""Query positions in a tile at most; fewer where one tile alone would exceed SCORE_LIMIT."""

SCORE_LIMIT = 16 * 2**20
"""Scores (and mask entries) computed at once: 64 MiB in float32."""

GATHER_LIMIT = 4 * 2**20
"""Numbers of K gathered at once, as many of V: 16 MiB each, which still fits a large cache."""


def write_kv(k: Tensor, v: Tensor, k_pool: Tensor, v_pool: Tensor, slot_mapping: Tensor) -> None:
    """Store k, v [T, KV, D] in the slots slot_mapping [T] int64 of the pools, in place.

    Slots of one call are distinct and below num_blocks * block_size; torch raises otherwise.
    """
    _as_slots(k_pool).index_copy_(0, slot_mapping, k)
    _as_slots(v_pool).index_copy_(0, slot_mapping, v)


def move_blocks(source: Tensor, target: Tensor, pairs: Sequence[tuple[int, int]]) -> None:
    """Copy block a of one pool to block b of another for each (a, b), on whatever devices.

    source, target: [num_blocks, ...] with one shape of a block. No two pairs write one block.
    """
    if pairs:
        sources, targets = (list(ids) for ids in zip(*pairs, strict=True))
        target[targets] = source[sources].to(target.device)


def copy_blocks(pool: Tensor, pairs: Iterable[tuple[int, int]]) -> None:
    """Copy block source to block target for each (source, target), as if one after another.

    pool: [num_blocks, ...]. Pairs go in one indexed copy as long as none reads or overwrites what
    an earlier one of the same copy wrote.
    """
    for run in independent_runs(pairs):
        targets = torch.tensor(list(run), device=pool.device)
        pool[targets] = pool[torch.tensor(list(run.values()), device=pool.device)]


def paged_attention(q: Tensor, k_pool: Tensor, v_pool: Tensor, meta: AttentionMeta) -> Tensor:
    """What q [T, H, D] reads from the pools [num_blocks, block_size, KV, D] -> [T, H, D].

    softmax(q k / sqrt(D)) v over the keys at positions up to the query's own; a sequence without
    keys gives zeros. Slots past a sequence's last key are never read, so NaN in them does no harm
    (0 x NaN is NaN: giving them weight 0 would not be enough). One dtype for all three tensors.
    Raises ValueError if shapes or dtypes do not fit. Cost: O(queries x keys) and one gather.
    """
    shape = pool_shape(k_pool)
    if shape.x:
        raise ValueError("this backend reads NHD pools only: give it unpack_k(k_pool)")
    require_fit(q, shape, k_pool.dtype, v_pool)
    key = ("reference", q.shape[1:], k_pool.shape, k_pool.dtype)
    if key not in meta.memo:
        meta.memo[key] = _plan(q.shape[1], k_pool, meta)
    work = meta.memo[key]
    out = torch.zeros_like(q)
    for part in work.parts:
        k = _gather(_as_slots(k_pool), part.slots, work.k_space)
        v = _gather(_as_slots(v_pool), part.slots, work.v_space)
        read = _attend(q[part.tokens], k, v, part.positions)
        if part.real is None:
            out[part.tokens] = read
        else:
            out[part.tokens[part.real]] = read[part.real]
    return out


class _Part(NamedTuple):
    """n tiles of Q queries over S keys, to be computed at once.

    tokens: [n, Q] rows of the flat batch; a short tile repeats its last one.
    real: [n, Q] bool, False for those repetitions; None if there are none.
    positions: [n, Q] of the queries. slots: [n, S]; past a tile's last key its last slot again.
    """

    tokens: Tensor
    real: Tensor | None
    positions: Tensor
    slots: Tensor


class _Work(NamedTuple):
    """A step's parts, and room for the keys and values of the largest [slots, KV, D].

    The room is kept from layer to layer: fresh memory for every gather would cost more than the
    gather, because the system clears each page of it at the first touch.
    """

    parts: list[_Part]
    k_space: Tensor
    v_space: Tensor


class _Tiles(NamedTuple):
    """Neighbouring queries of one sequence: who owns them, the first row, how many, keys up to
    the last of them. All [tiles] int64."""

    owner: Tensor
    first: Tensor
    length: Tensor
    context: Tensor

    def take(self, index: Tensor) -> _Tiles:
        return _Tiles(*(field[index] for field in self))


def _gather(slots: Tensor, index: Tensor, space: Tensor) -> Tensor:
    """Slots [n, S] of a pool [slots, KV, D] -> [n, KV, S, D], a view of `space`."""
    room = space[: index.numel()]
    torch.index_select(slots, 0, index.flatten(), out=room)
    return room.view(*index.shape, *slots.shape[1:]).transpose(1, 2)


def _attend(q: Tensor, k: Tensor, v: Tensor, positions: Tensor) -> Tensor:
    """Attention of q [n, Q, H, D] at positions [n, Q] over k, v [n, KV, S, D] -> [n, Q, H, D].

    The query heads of a KV head count as further queries of it, so that K and V are not repeated.
    """
    n, length, heads, dim = q.shape
    kv_heads, keys = k.shape[1], k.shape[2]
    group = heads // kv_heads
    folded = q.view(n, length, kv_heads, group, dim).permute(0, 2, 3, 1, 4)
    seen = torch.arange(keys, device=q.device) <= positions[:, None, None, :, None]
    if length > 1:
        seen = seen.expand(-1, -1, group, -1, -1)
    out = functional.scaled_dot_product_attention(
        folded.reshape(n, kv_heads, group * length, dim), k, v, attn_mask=seen.flatten(2, 3)
    )
    unfolded = out.view(n, kv_heads, group, length, dim).permute(0, 3, 1, 2, 4)
    return unfolded.reshape(n, length, heads, dim)


def _plan(heads: int, pool: Tensor, meta: AttentionMeta) -> _Work:
    parts = _parts(heads, pool.shape, meta)
    most = max((part.slots.numel() for part in parts), default=0)
    k_space, v_space = (pool.new_empty(most, *pool.shape[2:]) for _ in range(2))
    return _Work(parts, k_space, v_space)


def _parts(heads: int, pool_shape: Sequence[int], meta: AttentionMeta) -> list[_Part]:
    """Cut a step's attention into rectangles within the two limits: decodes first, then chunks."""
    _, block_size, kv_heads, dim = pool_shape
    tiles = _cut(meta, heads)
    parts = []
    for group in (tiles.length == 1, tiles.length > 1):
        chosen = tiles.take(group.nonzero().squeeze(1))
        chosen = chosen.take(chosen.context.argsort(descending=True, stable=True))
        start, total = 0, len(chosen.owner)
        while start < total:
            # Sorted, so the first tile has the longest context and sets the rectangle's width.
            keys = int(chosen.context[start])
            length = int(chosen.length[start:].max())
            most = min(
                GATHER_LIMIT // (keys * kv_heads * dim), SCORE_LIMIT // (keys * heads * length)
            )
            end = start + max(1, most)
            some = chosen.take(torch.arange(start, min(end, total)))
            parts.append(_part(some, block_size, meta.block_tables))
            start = end
    return parts


def _cut(meta: AttentionMeta, heads: int) -> _Tiles:
    """All sequences that have keys, as tiles on the CPU."""
    starts, seq_lens = meta.query_start_loc.long().cpu(), meta.seq_lens.long().cpu()
    query_lens = starts.diff()
    longest = max(1, int(seq_lens.max())) if len(seq_lens) else 1
    size = max(1, min(TILE, SCORE_LIMIT // (longest * heads)))
    counts = (query_lens + size - 1) // size * (seq_lens > 0)
    owner = torch.arange(len(counts)).repeat_interleave(counts)
    number = torch.arange(len(owner)) - (counts.cumsum(0) - counts)[owner]
    offset = number * size
    length = (query_lens[owner] - offset).clamp(max=size)
    context = (seq_lens - query_lens)[owner] + offset + length
    return _Tiles(owner, starts[owner] + offset, length, context)


def _part(tiles: _Tiles, block_size: int, block_tables: Tensor) -> _Part:
    device = block_tables.device
    column = torch.arange(int(tiles.length.max()))
    real = column < tiles.length[:, None]
    within = column.minimum(tiles.length[:, None] - 1)
    tokens = tiles.first[:, None] + within
    positions = (tiles.context - tiles.length)[:, None] + within
    keys = torch.arange(int(tiles.context.max())).minimum(tiles.context[:, None] - 1)
    owner = tiles.owner[:, None].to(device)
    return _Part(
        tokens=tokens.to(device),
        real=None if bool(real.all()) else real.to(device),
        positions=positions.to(device),
        slots=slots_of(block_tables, owner, keys.to(device), block_size),
    )


def slots_of(block_tables: Tensor, rows: Tensor, positions: Tensor, block_size: int) -> Tensor:
    """Slots, int64, of the tokens at `positions` of sequences `rows` of block_tables [B, blocks].

    rows and positions: int64, of one shape or broadcast to one.
    The block is widened before it is multiplied: block 134,217,728 of 16 slots starts at slot
    2^31, which 32 bits cannot hold.
    """
    blocks = block_tables[rows, positions // block_size]
    return blocks.long() * block_size + positions % block_size


def _as_slots(pool: Tensor) -> Tensor:
    """The pool as [slots, KV, D], the same memory; a pool that is not contiguous is refused."""
    return pool.view(-1, *pool.shape[2:])
