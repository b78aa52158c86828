"""How many steps a call takes: counted, not timed, so the same on every machine.

A step is a line of Python that runs, a comparison that a whole number among the arguments takes
part in (a search through a list compares once an element, in C, where no line is seen), an element
of a list, deque or array whose method goes over all of them (WHOLE), or eight bytes of new memory
(a copy of a list takes them, whoever makes it). Not seen is what moves elements in their place
without such a method: `del ids[k]`, `ids.pop(0)`, `ids[:0] = [x]`; nor a search by an operator that
compares something else than the argument. Standard library only: this runs in the learner's process
too.
"""

from __future__ import annotations

import sys
import tracemalloc
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

MAX_STEPS = 10_000_000
SMALL = 4096  # bytes: frames, numbers and the tracing itself stay below
SEQUENCES = (list, deque, array)
# methods that go over the elements there are; extend takes memory for those that it adds
WHOLE = frozenset("copy count index insert remove reverse rotate sort".split())


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
    return _measure(call, [_Counted(arg) if type(arg) is int else arg for arg in args])


def fewest(call: Callable[..., Any], arguments: Iterable[Sequence[Any]]) -> int:
    """The steps of the cheapest of several calls; `arguments` holds a list of arguments for each.

    A table that doubles when it is full makes a single call dear now and then. That is O(1) all
    the same, over many calls; what is dear every time is not. A call that raises is repeated once
    with plain ints, in which comparisons are not seen: to refuse any other class is right.
    """
    return min(_cost_of_plain(call, args) for args in arguments)


def _cost_of_plain(call: Callable[..., Any], args: Sequence[Any]) -> int:
    try:
        return cost_of(call, *args)
    except Exception:
        return _measure(call, args)


def _measure(call: Callable[..., Any], args: Sequence[Any]) -> int:
    """The steps of a call with these very arguments."""
    steps = 0

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal steps
        if frame.f_code.co_filename == __file__:  # a comparison counts once
            return None
        steps += event == "line"
        return trace

    def profile(frame: Any, event: str, arg: Any) -> None:
        nonlocal steps
        if event == "c_call" and arg.__name__ in WHOLE:
            steps += _length(getattr(arg, "__self__", None))

    _Counted.comparisons = 0
    before = sys.gettrace(), sys.getprofile()
    with _Memory() as memory:
        sys.settrace(trace)
        sys.setprofile(profile)
        try:
            call(*args)
        finally:
            sys.setprofile(before[1])
            sys.settrace(before[0])
    return min(steps + _Counted.comparisons + memory.num_pointers, MAX_STEPS)


def _length(subject: Any) -> int:
    """The elements of a list, deque or array, whatever a subclass says of its length; else 0."""
    for kind in SEQUENCES:
        if issubclass(type(subject), kind):
            return kind.__len__(subject)
    return 0


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


class Endless(RuntimeError):
    """A call that was stopped because it ran on and on."""


def lines_at_most(limit: int, call: Callable[..., Any], *args: Any) -> Any:
    """The result of a call; Endless once it has run `limit` lines of Python, wherever that is."""
    lines = 0

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        if lines > limit:
            name = getattr(call, "__name__", "the call")
            raise Endless(
                f"{name} was stopped after {limit:,} lines of Python: a loop in it does not end"
            )
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return call(*args)
    finally:
        sys.settrace(before)
