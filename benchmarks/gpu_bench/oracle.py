"""Attention in float64, one sequence after another: what the kernels are held against."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from minipaged.kernels.meta import AttentionMeta


class Expected(NamedTuple):
    """out [T, H, D] and lse [T, H] in float64; spread [T, H, D]: the sum of weight x |v| behind
    each number of out, which is what rounding errors are a share of."""

    out: Tensor
    lse: Tensor
    spread: Tensor


class Errors(NamedTuple):
    """out: the largest error as a share of `spread`. lse: the largest absolute error. Infinite if
    anything is not finite that should be, or the other way round."""

    out: float
    lse: float


def attention64(q: Tensor, k_pool: Tensor, v_pool: Tensor, meta: AttentionMeta) -> Expected:
    """q [T, H, D], pools [num_blocks, block_size, KV, D] in NHD; only slots with keys are read.

    Cost: one sequence's scores [KV, group x queries, keys] in float64 at a time.
    """
    tokens, heads, dim = q.shape
    out = q.new_zeros(tokens, heads, dim, dtype=torch.float64)
    spread = torch.zeros_like(out)
    lse = out.new_full((tokens, heads), -math.inf)
    starts, lens = meta.query_start_loc.tolist(), meta.seq_lens.tolist()
    for row, length in enumerate(lens):
        mine = slice(starts[row], starts[row + 1])
        if length:
            k, v = (_keys(pool, meta.block_tables[row], length) for pool in (k_pool, v_pool))
            out[mine], lse[mine], spread[mine] = _one(q[mine].double(), k, v)
    return Expected(out, lse, spread)


def _keys(pool: Tensor, table: Tensor, length: int) -> Tensor:
    """The first `length` tokens by a table, as [KV, length, D] float64."""
    block_size = pool.shape[1]
    blocks = pool[table[: -(-length // block_size)]]
    return blocks.flatten(0, 1)[:length].double().transpose(0, 1)


def _one(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """q [Q, H, D] are the last Q of the keys k, v [KV, S, D]."""
    queries, heads, dim = q.shape
    kv_heads, keys, _ = k.shape
    grouped = q.view(queries, kv_heads, heads // kv_heads, dim)
    scores = torch.einsum("qhgd,hsd->qhgs", grouped, k) / math.sqrt(dim)
    at = torch.arange(keys - queries, keys, device=q.device)
    hidden = torch.arange(keys, device=q.device) > at[:, None]
    scores.masked_fill_(hidden[:, None, None, :], -math.inf)
    lse = scores.logsumexp(-1)
    weights = (scores - lse[..., None]).exp()
    read = torch.einsum("qhgs,hsd->qhgd", weights, v)
    spread = torch.einsum("qhgs,hsd->qhgd", weights, v.abs())
    return read.flatten(1, 2), lse.flatten(1, 2), spread.flatten(1, 2)


def errors(out: Tensor, lse: Tensor | None, expected: Expected) -> Errors:
    """How far a kernel's result is from what was expected."""
    wrong = (out.double() - expected.out).abs()
    share = torch.where(wrong == 0, 0.0, wrong / expected.spread.clamp(min=1e-30))
    of_lse = 0.0
    if lse is not None:
        same = lse.double() == expected.lse  # -inf - -inf is NaN
        of_lse = _largest(torch.where(same, 0.0, (lse.double() - expected.lse).abs()))
    return Errors(_largest(share), of_lse)


def _largest(wrong: Tensor) -> float:
    if not wrong.numel():
        return 0.0
    return float("inf") if bool(wrong.isnan().any()) else float(wrong.max())
