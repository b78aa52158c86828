"""A scheduler's desk with a choice of victims, and with a budget that can be lowered.

No torch and no scheduler: this runs in the learner's process too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipaged.course.fixture_sched import SchedulerDesk


class VictimDesk(SchedulerDesk):
    """As SchedulerDesk. victim: the place in `running` of whoever is preempted, -1 or 0."""

    def __init__(
        self,
        make: Callable[..., Any],
        num_blocks: int,
        block_size: int,
        max_num_seqs: int,
        max_num_batched_tokens: int,
        victim: int = -1,
    ) -> None:
        def make_here(config: Any, manager: Any, **policies: Any) -> Any:
            choose = {"victim": lambda running, needy: running[victim]}
            return make(config, manager, **{**policies, **choose})

        super().__init__(make_here, num_blocks, block_size, max_num_seqs, max_num_batched_tokens)

    def lower(self, budget: int) -> None:
        """From the next step on a step has no more tokens than this."""
        object.__setattr__(self.config, "max_num_batched_tokens", budget)
