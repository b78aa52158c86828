"""Iteration-level scheduling with reservation: what Orca does, on memory without pages.

Requests join and leave at every step, as in the unified scheduler. But each reserves memory for
the longest that it may become, so that fewer run at once.

Source: Orca (Yu et al., OSDI 2022), where a batch is chosen anew for every iteration.
"""

from __future__ import annotations

from minipaged.plan import StepPlan
from minipaged.sched.reservation import Reservation


class OrcaReservation(Reservation):
    """First come, first served, as long as reservations fit; prompts are not cut.

    A prompt that the rest of a step's token budget does not hold waits for a step that does, and
    nobody overtakes it. One that is longer than the whole budget would wait for ever: it alone is
    cut, and takes the rest of every step until it is computed.
    """

    def _schedule_waiting(self, plan: StepPlan) -> None:
        whole, left = self.config.max_num_batched_tokens, self._budget
        while left > 0 and self.waiting and len(self.running) < self.config.max_num_seqs:
            request = self._order(self.waiting, self.manager)
            if left < request.num_tokens <= whole or not self._enter(request):
                break
            left -= min(request.num_tokens, left)
        self._schedule_running(plan)  # those that have just entered stand last in it
