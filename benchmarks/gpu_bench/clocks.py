"""Two clocks: CUDA events on a card, and the wall clock of a dry run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import torch

Call = Callable[[], Any]


class Timing(NamedTuple):
    """Median microseconds of one call.

    eager: from an idle card, so Python and the launches are in it. graph: within a CUDA graph of
    all calls in turn, replayed, which leaves the kernels; None where that could not be had.
    reps: repetitions of each. remark: why there is no graph.
    """

    eager: float
    graph: float | None
    reps: int
    remark: str = ""

    @property
    def best(self) -> float:
        """The kernels' own time where there is one."""
        return self.eager if self.graph is None else self.graph

    @property
    def by(self) -> str:
        return "eager" if self.graph is None else "graph"


class CudaClock:
    """Times by CUDA events. cuda: torch.cuda."""

    def __init__(self, cuda: ModuleType | Any = torch.cuda, *, seconds: float = 0.4) -> None:
        """seconds: what one measurement may take about; slower calls get fewer repetitions."""
        self._cuda, self._seconds = cuda, seconds

    def measure(
        self, calls: Sequence[Call], reps: int = 20, *, least: int = 3, graph: bool = True
    ) -> Timing:
        """Go through the calls in turn: each once to warm up, then `reps` repetitions.

        Those that take too long get fewer, `least` at least.
        """
        for call in calls:
            call()
        first = self._between(calls[0])
        reps = max(least, min(reps, int(self._seconds * 1e6 / max(first, 1.0))))
        eager = [self._between(calls[i % len(calls)]) for i in range(reps)]
        if not graph:
            return Timing(statistics.median(eager), None, reps, "not captured")
        stream = self._cuda.current_stream()
        try:
            replay = self._capture(calls)
        except Exception as error:
            self._cuda.set_stream(stream)  # a capture that failed leaves its own behind
            self._cuda.synchronize()
            return Timing(statistics.median(eager), None, reps, f"no graph: {first_line(error)}")
        replay()
        rounds = [self._between(replay) / len(calls) for _ in range(reps)]
        return Timing(statistics.median(eager), statistics.median(rounds), reps)

    def _between(self, call: Call) -> float:
        """Microseconds between an event before the call and one after it, on an idle card."""
        begin, end = (self._cuda.Event(enable_timing=True) for _ in range(2))
        self._cuda.synchronize()
        begin.record()
        call()
        end.record()
        self._cuda.synchronize()
        return begin.elapsed_time(end) * 1e3

    def _capture(self, calls: Sequence[Call]) -> Call:
        graph = self._cuda.CUDAGraph()
        with self._cuda.graph(graph):
            for call in calls:
                call()
        return graph.replay


class WallClock:
    """The same figures by the wall clock, to try the scripts on a CPU: they mean nothing."""

    def measure(
        self, calls: Sequence[Call], reps: int = 20, *, least: int = 3, graph: bool = True
    ) -> Timing:
        """One call for each figure."""
        eager, whole = _seconds(calls[:1]), _seconds(calls[:1]) if graph else 0.0
        return Timing(eager * 1e6, whole * 1e6 if graph else None, 1, "" if graph else "no graph")


def _seconds(calls: Sequence[Call]) -> float:
    begin = time.perf_counter()
    for call in calls:
        call()
    return time.perf_counter() - begin


def first_line(error: BaseException) -> str:
    """An error in one short line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:100] if lines else 'no message'}"
