"""The last known token of a live request, exchanged or taken back between two steps.

Beam search and whoever edits a text while it is written need it. What was worked out about the
token is forgotten; what was computed stays, but for the slot that has to be written again.
"""

from __future__ import annotations

from minipaged.cache.manager import KVManager
from minipaged.request import Request


def exchange(manager: KVManager, request: Request, token_id: int) -> None:
    """Let the last known token, which is not computed, be another one. O(1)."""
    request.token_ids[-1] = token_id
    del request.block_links[(len(request.token_ids) - 1) // manager.block_size :]


def take_back(manager: KVManager, request: Request) -> int:
    """Drop the last known token and return it; at least one token is then left to compute.

    If all that is left was computed, its last slot is written again at the next step; a block that
    others know or hold is copied first. O(1), and O(blocks) if a block is left without tokens.
    """
    token = request.token_ids.pop()
    last = len(request.token_ids) - 1
    del request.block_links[last // manager.block_size :]
    if request.num_computed_tokens > last:
        _step_back(manager, request, last)
    return token


def _step_back(manager: KVManager, request: Request, num_computed: int) -> None:
    """Let no more than this be computed, and hold no block behind the one that is next."""
    request.num_computed_tokens = num_computed
    request.ready_slots = 0
    entry, swap = num_computed // manager.block_size, manager.swap
    request.num_published_blocks = min(request.num_published_blocks, entry)
    table = manager.tables.get(request.request_id)
    if table is None:
        if swap is not None and request.is_swapped:
            swap.shorten(request)
        return
    if swap is not None:
        swap.forget(table.block_ids[entry:])
    surplus = table.block_ids[entry + 1 :]
    if surplus:
        del table.block_ids[entry + 1 :]
        manager.pool.free(surplus)
        request.num_blocks = entry + 1
        request.num_sent_blocks = min(request.num_sent_blocks, entry + 1)
        manager.num_entries -= len(surplus)
