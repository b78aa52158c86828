"""How many steps a call takes: counted, not timed, so the same on every machine.

A step is a line of Python that runs, a comparison that the argument takes part in (a search through
a list compares once an element, in C, where no line is seen), or an element that list.insert has to
move. Standard library only: this runs in the learner's process too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

MAX_STEPS = 10_000_000


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
    sys.settrace(trace)
    sys.setprofile(profile)
    try:
        call(*counted)
    finally:
        sys.setprofile(before[1])
        sys.settrace(before[0])
    return min(steps + _Counted.comparisons, MAX_STEPS)
