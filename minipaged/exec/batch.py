"""From a plan to tensors: all tokens of a step as one flat batch."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from minipaged.exec.base import BlockRows
from minipaged.kernels.meta import AttentionMeta
from minipaged.kernels.reference import slots_of
from minipaged.plan import SampleSpec, ScheduledItem, StepPlan


@dataclass(frozen=True, slots=True)
class Batch:
    """One step's T tokens of B requests, one request after the other. Tensors are int64.

    token_ids, positions, slot_mapping: [T]; the token, its place in its own sequence, and the
        slot of the pool that its keys and values go to.
    attention: query_start_loc, seq_lens and block_tables (padded with 0).
    sample_rows: [number of samples], the row of each sampled item's last token.
    samples: (request_id, SampleSpec) in the order of sample_rows.
    """

    token_ids: Tensor
    positions: Tensor
    slot_mapping: Tensor
    attention: AttentionMeta
    sample_rows: Tensor
    samples: list[tuple[str, SampleSpec]]


def pack(
    plan: StepPlan, rows: BlockRows, block_size: int, device: torch.device | str = "cpu"
) -> Batch:
    """Bring `rows` up to date from the plan's items (at least one) and lay them out flat.

    Raises ValueError if an item has no tokens, or a position for which its row has no block.
    Cost: O(tokens + block table entries read).
    """
    tokens = [item.token_ids for item in plan.items]
    lengths = torch.tensor([len(some) for some in tokens])
    starts = torch.tensor([item.start_position for item in plan.items])
    tables = _pad([_row(item, rows, block_size) for item in plan.items])
    ends = lengths.cumsum(0)
    owner = torch.arange(len(lengths)).repeat_interleave(lengths)
    positions = torch.arange(len(owner)) + (starts - ends + lengths)[owner]
    slot_mapping = slots_of(tables, owner, positions, block_size)
    sampled = [i for i, item in enumerate(plan.items) if item.sample is not None]
    return Batch(
        token_ids=torch.tensor(list(chain.from_iterable(tokens))).to(device),
        positions=positions.to(device),
        slot_mapping=slot_mapping.to(device),
        attention=AttentionMeta(
            query_start_loc=torch.cat((torch.zeros(1, dtype=torch.int64), ends)).to(device),
            seq_lens=(starts + lengths).to(device),
            block_tables=tables.to(device),
        ),
        sample_rows=(ends[sampled] - 1).to(device),
        samples=[(item.request_id, item.sample) for item in plan.items if item.sample is not None],
    )


def _row(item: ScheduledItem, rows: BlockRows, block_size: int) -> list[int]:
    """The blocks that the item's context fills, from the request's updated row."""
    row = rows.update_for(item, block_size)
    context = item.start_position + len(item.token_ids)
    return row[: -(-context // block_size)]


def _pad(rows: list[list[int]]) -> Tensor:
    """Rows of different lengths as one tensor [B, longest] int64, filled up with 0."""
    width = max(len(row) for row in rows)
    flat: list[int] = []
    for row in rows:
        flat += row
        flat += [0] * (width - len(row))
    return torch.tensor(flat).view(len(rows), width)
