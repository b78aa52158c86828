"""Longest prefix match first: whoever finds most of the prompt in the cache is admitted next.

Requests that share a prefix then come one after the other, while its blocks are still there. As a
rule alone it starves requests that match nothing, so nobody is passed over more than a few times.

Source: SGLang, python/sglang/srt/managers/schedule_policy.py ("lpm"; Zheng et al. 2024), which
falls back to first come, first served when its queue is long.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from minipaged.cache.manager import KVManager
from minipaged.request import Request, RequestStatus

WINDOW = 32  # waiting requests that are looked at
PATIENCE = 8  # times that the first in line may be passed over


class LongestPrefixFirst:
    """An OrderPolicy with a memory: how often the first in line was passed over."""

    def __init__(self) -> None:
        self._first = ""
        self._passed = 0

    def __call__(self, waiting: Sequence[Request], manager: KVManager) -> Request:
        """Cost: O(prompt tokens of the first WINDOW requests)."""
        first = waiting[0]
        if first.request_id != self._first:
            self._first, self._passed = first.request_id, 0
        is_back = first.status is RequestStatus.PREEMPTED
        if manager.prefix is None or is_back or self._passed >= PATIENCE:
            return first
        prefix = manager.prefix
        # max keeps the first of equals: without a match the order stays as they came
        best = max(islice(waiting, WINDOW), key=lambda request: len(prefix.match(request)))
        self._passed += best is not first
        return best
