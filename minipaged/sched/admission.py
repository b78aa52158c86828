"""When a waiting request may enter: the gates that admission has beside "it fits".

Each is off at 0. They hold back admission alone; only the low water mark also makes requests that
run give way, before memory is out. None holds while nothing runs.
"""

from __future__ import annotations

from minipaged.config import SchedulerConfig

MAX_DOUBLINGS = 10


class Gates:
    """The admission policy that a configuration describes. All counts are of free blocks.

    reserve: to be left over after an admission: watermark_blocks + admission_headroom, and no less
    than the low mark, or whoever has come would have to go at once.
    low, high: the water marks. Below high nobody enters; below low the latest have to leave, so
    that between the two there is neither: a request let go at the low mark does not come straight
    back (hysteresis).
    """

    def __init__(self, config: SchedulerConfig) -> None:
        self.low, self.high = config.low_water_blocks, config.high_water_blocks
        self.reserve = max(config.watermark_blocks + config.admission_headroom, self.low)

    def __call__(self, blocks_needed: int, num_free: int) -> bool:
        """May a request enter that needs this many blocks more? O(1)."""
        return blocks_needed + self.reserve <= num_free and num_free >= self.high

    def must_shed(self, num_free: int) -> bool:
        """Are so few blocks free that a running request has to give way already? O(1)."""
        return num_free < self.low


def backoff(base_steps: int, num_preemptions: int) -> int:
    """Steps that a request stays out after its num_preemptions-th preemption: base, 2 base, 4 base
    ... up to 2^10 base. 0 without a base."""
    return base_steps << min(num_preemptions - 1, MAX_DOUBLINGS) if base_steps else 0
