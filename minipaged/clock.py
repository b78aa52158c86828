"""Time, asked for in one place, so that a simulated run can be as exact as a real one."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Seconds since an arbitrary start. Never goes backwards."""

    def now(self) -> float: ...

    def advance(self, seconds: float) -> None:
        """A step took this long. A real clock has noticed already."""
        ...


class WallClock:
    """Real time (time.perf_counter)."""

    def now(self) -> float:
        """Seconds, monotonic."""
        return time.perf_counter()

    def advance(self, seconds: float) -> None:
        """Nothing: real time has passed by itself."""


class VirtualClock:
    """Simulated time: stands still until it is told to move."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def now(self) -> float:
        """Seconds since the start of the simulation."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move on by `seconds`; ValueError if that is negative."""
        if seconds < 0:
            raise ValueError(f"time cannot go back: asked to advance by {seconds} s")
        self._now += seconds

    def jump_to(self, when: float) -> None:
        """Move on to a given time; does nothing if that has passed."""
        self._now = max(self._now, when)
