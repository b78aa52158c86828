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
        self._first: Request | None = None
        self._chosen: Request | None = None
        self._passed = 0

    def __call__(self, waiting: Sequence[Request], manager: KVManager) -> Request:
        """Cost: O(prompt tokens of the first WINDOW requests)."""
        first = waiting[0]
        self._count(first)
        prefix = manager.prefix
        if prefix is None or first.status is _PREEMPTED or self._passed >= PATIENCE:
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


_WAITING, _PREEMPTED = RequestStatus.WAITING, RequestStatus.PREEMPTED
