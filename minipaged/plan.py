"""The only seam between deciding and doing: a StepPlan goes in, a StepResult comes back.

A scheduler writes plans and never sees a tensor; an executor carries plans out and never sees a
request. Both sides hold plain values only, so a plan can be printed, compared, stored or replayed,
and building one costs time in proportion to what it schedules, never to the length of a context.

An executor carries a plan out in the order of its fields: swap_out, swap_in, copies, then items.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from minipaged.config import SamplingParams


class SampleSpec(NamedTuple):
    """How to draw the token that follows an item's last token.

    Randomness is a function of (seed, sample_index, output_index) and of nothing else, so a
    token depends neither on the batch it is drawn in nor on how often its request was preempted.

    params: temperature, top_k and so on; its stop_token_ids include the model's own.
    output_index: 0 for the request's first output token.
    num_samples: tokens to draw from the same logits: this one and, with sample_index + 1 and on,
        the first ones of the sequences that branch off here.
    logprobs: how many likeliest tokens to report, or None.
    """

    params: SamplingParams
    seed: int
    sample_index: int
    output_index: int
    num_samples: int
    logprobs: int | None


def branches_of(spec: SampleSpec) -> list[SampleSpec]:
    """The specs of the further samples that are to be drawn where this one is."""
    first = spec.sample_index + 1
    return [
        spec._replace(sample_index=index, num_samples=1)
        for index in range(first, first + spec.num_samples - 1)
    ]


class ScheduledItem(NamedTuple):
    """One request's share of a step: compute token_ids at start_position and onwards.

    token_ids: the tokens to compute now; the last draft_len of them are guesses.
    first_block, block_ids: the block table's entries from logical block first_block on. A new or
        resumed request sends its whole table (first_block 0), a growing one what is new, one
        whose tail was copied the last entry. The executor keeps the row between steps.
    sample: None while known tokens remain to be computed after this item.
    """

    request_id: str
    token_ids: list[int]
    start_position: int
    first_block: int
    block_ids: list[int]
    sample: SampleSpec | None
    draft_len: int


class BlockMove(NamedTuple):
    """Copy one block's keys and values. Which pool each id belongs to depends on the list."""

    source: int
    target: int


@dataclass(slots=True)
class StepPlan:
    """All that one step does, in order of execution.

    swap_out: device block to host block. swap_in: host block to device block.
    copies: device block to device block (copy-on-write). finished: ids whose rows the executor
    may forget, since the last plan. The row of a preempted request means nothing until it comes
    back with a whole table.
    """

    step: int
    swap_out: list[BlockMove] = field(default_factory=list)
    swap_in: list[BlockMove] = field(default_factory=list)
    copies: list[BlockMove] = field(default_factory=list)
    items: list[ScheduledItem] = field(default_factory=list)
    finished: list[str] = field(default_factory=list)

    @property
    def num_tokens(self) -> int:
        """Tokens that this step computes."""
        return sum(len(item.token_ids) for item in self.items)

    def is_empty(self) -> bool:
        """True if there is nothing to compute or move."""
        return not (self.items or self.copies or self.swap_out or self.swap_in)


class TokenLogprobs(NamedTuple):
    """Natural-log probabilities at one output position.

    token_id, logprob, rank: the chosen token's own (rank 1 is the likeliest).
    top: (token id, logprob) of the likeliest tokens, best first.
    """

    token_id: int
    logprob: float
    rank: int
    top: tuple[tuple[int, float], ...]


@dataclass(slots=True)
class StepResult:
    """What a step produced.

    token_ids: per sampled request the new tokens, one unless drafts were accepted.
    elapsed: seconds that the step took (measured, or computed by a cost model).
    logprobs: per request that asked for them, one entry per new token.
    forks: per request whose SampleSpec had num_samples > 1, the first tokens of samples 1 and on.
    fork_logprobs: likewise, if asked for.
    """

    token_ids: dict[str, list[int]]
    elapsed: float
    logprobs: dict[str, list[TokenLogprobs]] = field(default_factory=dict)
    forks: dict[str, list[int]] = field(default_factory=dict)
    fork_logprobs: dict[str, list[TokenLogprobs]] = field(default_factory=dict)


def require_tokens(plan: StepPlan, result: StepResult) -> None:
    """RuntimeError if an item that samples came back without a token."""
    for item in plan.items:
        if item.sample is not None and not result.token_ids.get(item.request_id):
            raise RuntimeError(f"the executor returned no token for request {item.request_id!r}")
