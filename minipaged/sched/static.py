"""Static batching: a batch starts together, and nobody joins until its last request has ended.

What serving looked like before iteration-level scheduling, and what `model.generate(batch)` of a
training library still is. A place whose request has ended early idles until the batch has ended;
prompts are padded to the longest of the batch. Both are counted here and computed nowhere.
"""

from __future__ import annotations

from minipaged.plan import StepPlan
from minipaged.sched.reservation import Reservation


class StaticBatching(Reservation):
    """Up to max_num_seqs requests at a time, as many as find a reservation.

    If the token budget does not hold all prompts of a batch, their computation goes on in its next
    steps, in order of admission, beside the outputs of those before them.

    num_idle_places: place-steps in which a place of the batch had no request any more.
    num_padding_tokens: what a rectangle of the batch's prompts holds beside the prompts.
    """

    num_idle_places = 0
    num_padding_tokens = 0
    _batch_size = 0

    def _schedule_running(self, plan: StepPlan) -> None:
        if self.running:
            self.num_idle_places += self._batch_size - len(self.running)
            super()._schedule_running(plan)

    def _schedule_waiting(self, plan: StepPlan) -> None:
        if self.running:
            return
        while self.waiting and len(self.running) < self.config.max_num_seqs:
            if not self._enter(self._order(self.waiting, self.manager)):
                break
        self._batch_size = len(self.running)
        lengths = [request.num_tokens for request in self.running]
        self.num_padding_tokens += sum(max(lengths) - length for length in lengths)
        self._schedule_running(plan)
