"""Whom to preempt when a running request finds no block: each rule a plain function.

`running` is in order of admission. Of equals the one admitted last goes, so that the first in line
moves on and somebody finishes. Each costs O(running) at most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from minipaged.protocols import VictimPolicy
from minipaged.request import Request


def last_admitted(running: Sequence[Request], needy: Request) -> Request:
    """The request admitted last: it has the least to lose as a rule, and the first in line always
    moves on. vLLM's rule for first come, first served (vllm/v1/core/sched/scheduler.py). O(1)."""
    return running[-1]


def fewest_computed(running: Sequence[Request], needy: Request) -> Request:
    """The request with the fewest computed tokens: the least is computed again."""
    return _last_of_least(running, lambda request: request.num_computed_tokens)


def lowest_priority(running: Sequence[Request], needy: Request) -> Request:
    """The request with the largest priority number: vLLM's rule with priority scheduling."""
    return _last_of_least(running, lambda request: -request.priority)


def most_blocks(running: Sequence[Request], needy: Request) -> Request:
    """The request with the longest block table: the fewest have to go, and the most is lost."""
    return _last_of_least(running, lambda request: -request.num_blocks)


def _last_of_least(running: Sequence[Request], key: Callable[[Request], int]) -> Request:
    return min(reversed(running), key=key)


VICTIM_POLICIES: dict[str, VictimPolicy] = {
    "last-admitted": last_admitted,
    "fewest-computed": fewest_computed,
    "lowest-priority": lowest_priority,
    "most-blocks": most_blocks,
}
