"""How many steps a call takes: counted, not timed, so the same on every machine.

A step is a line of Python that runs, a comparison that the argument takes part in (a search through
a list compares once an element, in C, where no line is seen), an element that list.insert has to
move, or eight bytes of new memory (a copy of a list takes them, whoever makes it). list.pop(0),
which moves all elements in their place, is the one search or shift that is not seen. Standard
library only: this runs in the learner's process too.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

MAX_STEPS = 10_000_000
SMALL = 4096  # bytes: frames, numbers and the tracing itself stay below


class _Counted(int):
    """An int that counts how often it is compared."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        _Counted.comparisons += 1
        return int.__eq__(self, other)

    __hash__ = int.__hash__


def cost_of(call: Callable[..., Any], *args: Any) -> int:
    """Carry the call out, return the steps that it took. Whole numbers among args are counted.

    What the call keeps of them is no longer a plain int: nothing but further costs may be asked
    of the object afterwards.
    """
    steps = 0

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal steps
        if frame.f_code.co_filename == __file__:  # a comparison counts once
            return None
        steps += event == "line"
        return trace

    def profile(frame: Any, event: str, arg: Any) -> None:
        nonlocal steps
        if event == "c_call" and arg.__name__ == "insert":
            inside = getattr(arg, "__self__", None)
            steps += len(inside) if type(inside) is list else 0

    counted = [_Counted(arg) if type(arg) is int else arg for arg in args]
    _Counted.comparisons = 0
    before = sys.gettrace(), sys.getprofile()
    with _Memory() as memory:
        sys.settrace(trace)
        sys.setprofile(profile)
        try:
            call(*counted)
        finally:
            sys.setprofile(before[1])
            sys.settrace(before[0])
    return min(steps + _Counted.comparisons + memory.num_pointers, MAX_STEPS)


class _Memory:
    """How many pointers fit into the memory that was taken meanwhile; 0 if it is little."""

    num_pointers = 0

    def __enter__(self) -> _Memory:
        self._was_on = tracemalloc.is_tracing()
        if not self._was_on:
            tracemalloc.start()
        tracemalloc.reset_peak()
        self._before = tracemalloc.get_traced_memory()[0]
        return self

    def __exit__(self, *exception: object) -> None:
        taken = tracemalloc.get_traced_memory()[1] - self._before
        if not self._was_on:
            tracemalloc.stop()
        self.num_pointers = taken // 8 if taken > SMALL else 0
