"""The live view: a run drawn step by step on a terminal, at the pace that its keys set."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.live import Live

from minipaged.trace import StepRecord
from minipaged.viz.keys import Keys
from minipaged.viz.run import Run
from minipaged.viz.terminal import Frame

HINT = "space pause   n or → one step   + faster   - slower   q quit"
LAST_LOOK_S = 3.0


def watch(run: Run, console: Console, keys: Keys, delay: float) -> None:
    """Show a run until it is done or somebody quits; the terminal is then as it was before.

    delay: seconds between steps, to begin with. The last picture stays for a moment or a key.
    """
    pace = Pace(delay)
    with keys, Live(console=console, screen=True, auto_refresh=False) as live:
        while not run.done and not pace.quit:
            latest = run.step()

            def redraw(latest: StepRecord = latest) -> None:
                frame = Frame(latest, run.state, status=pace.status, hint=HINT)
                live.update(frame, refresh=True)

            redraw()
            pace.wait(keys, redraw)
        if run.done and run.trace.steps and not pace.quit:
            frame = Frame(run.rest(), run.state, status="all done", hint="any key")
            live.update(frame, refresh=True)
            keys.read(LAST_LOOK_S if delay else 0.0)


class Pace:
    """When the next step of the live view comes, and what the keys do to that."""

    def __init__(self, delay: float) -> None:
        self.delay = max(delay, 0.0)
        self.paused = False
        self.quit = False

    @property
    def status(self) -> str:
        """In a few words, for the first line."""
        return "paused" if self.paused else f"{self.delay * 1000:.0f} ms a step"

    def wait(self, keys: Keys, redraw: Callable[[], None]) -> None:
        """Return when the next step is due or `quit` is set."""
        due = time.monotonic() + self.delay
        while not self.quit:
            left = due - time.monotonic()
            key = keys.read(0.25 if self.paused else min(max(left, 0.0), 0.25))
            if key in ("n", "right"):
                self.paused = True
                return
            self._press(key)
            if not self.paused and time.monotonic() >= due:
                return
            redraw()

    def _press(self, key: str) -> None:
        if key == " ":
            self.paused = not self.paused
        elif key in ("+", "="):
            self.delay = self.delay / 2 if self.delay > 0.004 else 0.0
        elif key in ("-", "_"):
            self.delay = min(max(self.delay * 2, 0.005), 5.0)
        elif key in ("q", "Q"):
            self.quit = True
