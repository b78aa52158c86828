"""Which waiting request is admitted next: first come, by priority, or by what the cache knows.

Longest prefix match first: requests that share a prefix come one after the other, while its blocks
are still there. As a rule alone it starves requests that match nothing, so nobody is passed over
more than a few times. Source: SGLang, python/sglang/srt/managers/schedule_policy.py ("lpm"; Zheng
et al. 2024), which falls back to first come, first served when its queue is long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from minipaged.cache.manager import KVManager
from minipaged.protocols import OrderPolicy
from minipaged.request import Request, RequestStatus


def first_come(waiting: Sequence[Request], manager: KVManager) -> Request:
    """First come, first served; a preempted request stands at the front already. O(1)."""
    return waiting[0]


def by_priority(waiting: Sequence[Request], manager: KVManager) -> Request:
    """The smallest priority number; of equals the first in line. vLLM's priority scheduling.
    O(waiting)."""
    return min(waiting, key=lambda request: request.priority)


WINDOW = 32  # waiting requests that are looked at
PATIENCE = 8  # times that the first in line may be passed over


class LongestPrefixFirst:
    """An OrderPolicy with a memory: how often the first in line was passed over."""

    def __init__(self) -> None:
        self._first: Request | None = None
        self._chosen: Request | None = None
        self._passed = 0

    def __call__(self, waiting: Sequence[Request], manager: KVManager) -> Request:
        """Cost: O(prompt tokens of the first WINDOW requests)."""
        first = waiting[0]
        self._count(first)
        prefix = manager.prefix
        if prefix is None or first.status is not _WAITING or self._passed >= PATIENCE:
            self._chosen = first
        else:
            # max keeps the first of equals: without a match the order stays as they came
            near = islice(waiting, WINDOW)
            self._chosen = max(near, key=lambda request: len(prefix.match(request)))
        return self._chosen

    def _count(self, first: Request) -> None:
        """Was another one admitted since the last question, in front of this one?"""
        if first is not self._first:
            self._first, self._passed = first, 0
        elif self._chosen is not first and self._chosen and self._chosen.status is not _WAITING:
            self._passed += 1


_WAITING = RequestStatus.WAITING

ORDER_POLICIES: dict[str, Callable[[], OrderPolicy]] = {
    "fcfs": lambda: first_come,
    "priority": lambda: by_priority,
    "lpm": LongestPrefixFirst,
}
