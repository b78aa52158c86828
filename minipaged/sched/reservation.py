"""Memory set aside ahead of time: what the baselines share that know no paging.

A request enters only when there is room for its longest possible end, its prompt and all that it
may write, and holds that room until it leaves. So it never lacks a block and is never preempted;
what it has reserved and not written is lost to all others meanwhile.

Source: the "max" variant of the Orca baselines in the PagedAttention paper (Kwon et al., SOSP 2023,
section 6.1).
"""

from __future__ import annotations

from minipaged.request import Request
from minipaged.sched.scheduler import Scheduler


class Reservation(Scheduler):
    """A scheduler whose requests reserve, and share no block: the base of two baselines.

    Nothing grows, so the victim and admission policies are never asked, and cached prefixes are not
    looked for. A further sample or a fork has a reservation of its own: it waits for one, and what
    its parent has computed is computed again.
    """

    def fork(self, parent: Request, child: Request) -> None:
        """Queue the child behind all others. O(1)."""
        self.add(child)

    def _shed(self) -> None:
        """Nobody has to give way: what runs has all that it will ever need."""

    def _enter(self, request: Request) -> bool:
        """Reserve for the longest possible end and let the request run; False if there is no room.

        The last output is never stored, so it needs no slot. Cost: O(blocks reserved).
        """
        if not self.manager.reserve(request, request.max_num_tokens - 1):
            return False
        self._admit(request)
        return True

    def _run_beside(self, parent: Request, child: Request, place: int = 1) -> None:
        """A sample that has branched off waits first in line, with the token that it has."""
        self.waiting.insert(place - 1, child)
