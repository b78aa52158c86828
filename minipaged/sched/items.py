"""A request's share of a step, as the plan says it.

Building items is most of what deciding costs, so a step of decodes is built here in one loop
without further calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from minipaged.plan import SampleSpec, ScheduledItem
from minipaged.request import Request

# two are made per request and step, and the class's own call costs twice as much
new_tuple = tuple.__new__


def make_item(
    request: Request, num_new: int, first_block: int, block_ids: list[int]
) -> ScheduledItem:
    """The item for the next `num_new` tokens; it samples if they are the last known ones."""
    start, token_ids = request.num_computed_tokens, request.token_ids
    end = start + num_new
    sample = None
    if end == len(token_ids):
        index, count = end - request.num_prompt_tokens, request.num_forks_due + 1
        params = request.params
        spec = (params, request.seed, request.sample_index, index, count, params.logprobs)
        sample = new_tuple(SampleSpec, spec)
    item = (request.request_id, token_ids[start:end], start, first_block, block_ids, sample, 0)
    return new_tuple(ScheduledItem, item)


def add_ready_items(running: Sequence[Request], items: list[ScheduledItem], budget: int) -> int:
    """Add items for the running requests that have none yet, up to the first that needs a block.

    That is one for which there is more to do than to put its known tokens into slots that it has:
    KVManager.grow decides. Returns what is left of the token budget. Equal to make_item for each.
    """
    for request in islice(running, len(items), None):
        start, token_ids = request.num_computed_tokens, request.token_ids
        end = len(token_ids)
        num_new = end - start
        if num_new > budget or end > request.ready_slots:
            break
        request.num_inflight_tokens = num_new
        budget -= num_new
        index, count = end - request.num_prompt_tokens, request.num_forks_due + 1
        params = request.params
        spec = (params, request.seed, request.sample_index, index, count, params.logprobs)
        sample, new = new_tuple(SampleSpec, spec), token_ids[start:]
        none: list[int] = []
        item = (request.request_id, new, start, request.num_blocks, none, sample, 0)
        items.append(new_tuple(ScheduledItem, item))
    return budget
