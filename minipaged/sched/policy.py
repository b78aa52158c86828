"""The scheduler's choices, each a plain function: whom to preempt, when to let a request in."""

from __future__ import annotations

from collections.abc import Sequence

from minipaged.cache.manager import KVManager
from minipaged.config import SchedulerConfig
from minipaged.protocols import AdmissionPolicy
from minipaged.request import Request


def last_admitted(running: Sequence[Request], needy: Request) -> Request:
    """The victim is the request admitted last: it has the least to lose, and the first in line
    always moves on, so somebody finishes. vLLM's rule for first come, first served
    (vllm/v1/core/sched/scheduler.py)."""
    return running[-1]


def first_come(waiting: Sequence[Request], manager: KVManager) -> Request:
    """First come, first served; a preempted request stands at the front already. O(1)."""
    return waiting[0]


def recompute(request: Request, num_blocks: int) -> str:
    """Preempt by dropping keys and values; they are computed again on return."""
    return "recompute"


def full_admission(config: SchedulerConfig) -> AdmissionPolicy:
    """Admit a request only if all its known tokens fit now, and the reserve stays free.

    The reserve is watermark_blocks + admission_headroom.
    """
    reserve = config.watermark_blocks + config.admission_headroom

    def may_enter(blocks_needed: int, num_free: int) -> bool:
        return blocks_needed + reserve <= num_free

    return may_enter
