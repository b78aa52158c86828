"""What an attention function is told about a step's batch, besides queries and pools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor


@dataclass(frozen=True, slots=True)
class AttentionMeta:
    """The sequences of one step. Names as in vLLM; all tensors int64 on the pool's device.

    query_start_loc: [B + 1]; sequence b's queries are rows query_start_loc[b] up to
        query_start_loc[b + 1] of the flat batch.
    seq_lens: [B]; keys that sequence b has, those of this step's tokens included. Its queries are
        the last of them; 0 marks a row without any.
    block_tables: [B, max blocks]; block_tables[b, i] is the block that holds keys i * block_size
        and onwards. Entries past the last key mean nothing.
    memo: empty at the start of a step; an attention function may keep in it what it works out
        from the other fields, because every layer is called with the same AttentionMeta.
    """

    query_start_loc: Tensor
    seq_lens: Tensor
    block_tables: Tensor
    memo: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)


AttentionFn = Callable[[Tensor, Tensor, Tensor, AttentionMeta], Tensor]
"""attention(q [T, H, D], k_pool, v_pool [num_blocks, block_size, KV, D], meta) -> [T, H, D].

The keys and values of this step's tokens are in the pools already. Query i of a sequence with Q
queries and S keys stands at position S - Q + i and reads the keys at positions up to its own.
Query head h reads KV head h // (H / KV). Slots that no token was written to may hold NaN. Rows of q
behind the last query_start_loc are nobody's, and what comes out there means nothing.
"""
