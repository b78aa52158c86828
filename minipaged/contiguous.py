"""The older way: one unbroken stretch of memory a request. For comparison only; no torch.

The engine never uses this. Lessons set it beside the paged pool, to see what it wastes and when it
refuses a request although enough slots are free.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import NamedTuple

from minipaged.require import require_int


class Stretch(NamedTuple):
    """`length` slots from `start` on."""

    start: int
    length: int


class ContiguousPool:
    """A row of slots from which requests take stretches, each in the first gap that holds it.

    First fit with merging of neighbouring gaps, on a sorted list of gaps (Knuth, The Art of
    Computer Programming, volume 1, section 2.5). Every call costs O(gaps).
    """

    def __init__(self, num_slots: int) -> None:
        require_int("num_slots", num_slots, 1, "a pool without slots holds nothing")
        self.num_slots = num_slots
        self.held: dict[str, Stretch] = {}
        self._gaps = [Stretch(0, num_slots)]

    def reserve(self, name: str, length: int) -> int:
        """Take `length` slots for `name`, return the first of them.

        MemoryError if no gap holds them, ValueError if `name` holds a stretch already or length
        is below 1; then nothing is changed.
        """
        require_int("length", length, 1, "a request needs at least one slot")
        if name in self.held:
            raise ValueError(f"{name!r} holds slots already: release them first")
        for number, gap in enumerate(self._gaps):
            if gap.length >= length:
                rest = Stretch(gap.start + length, gap.length - length)
                self._gaps[number : number + 1] = [rest] if rest.length else []
                self.held[name] = Stretch(gap.start, length)
                return gap.start
        raise MemoryError(
            f"{name!r} asks for {length} slots in a row, but the largest gap has "
            f"{self.largest_gap} ({self.num_free} are free in all): wait for a release"
        )

    def release(self, name: str) -> None:
        """Give back what `name` holds; ValueError if that is nothing."""
        if name not in self.held:
            raise ValueError(f"{name!r} holds no slots: was it released before?")
        freed = self.held.pop(name)
        at = bisect.bisect(self._gaps, freed)
        first, last = at, at
        if at > 0 and sum(self._gaps[at - 1]) == freed.start:
            first = at - 1
        if at < len(self._gaps) and self._gaps[at].start == sum(freed):
            last = at + 1
        whole = [*self._gaps[first:at], freed, *self._gaps[at:last]]
        length = sum(part.length for part in whole)
        self._gaps[first:last] = [Stretch(whole[0].start, length)]

    @property
    def gaps(self) -> list[Stretch]:
        """The free stretches in order; no two of them touch."""
        return list(self._gaps)

    @property
    def num_free(self) -> int:
        """Free slots, wherever they lie."""
        return sum(gap.length for gap in self._gaps)

    @property
    def largest_gap(self) -> int:
        """Length of the longest free stretch, 0 if all is taken."""
        return max((gap.length for gap in self._gaps), default=0)


class Use(NamedTuple):
    """Slots for a set of requests. reserved: in one stretch each. used: with a token in them.
    in_blocks: in blocks, each of which belongs to one request."""

    reserved: int
    used: int
    in_blocks: int


def compare(lengths: Sequence[int], max_model_len: int, block_size: int) -> Use:
    """What requests of these lengths (in tokens) take of memory, both ways.

    ValueError if a length is negative or above max_model_len. Cost: O(requests).
    """
    require_int("max_model_len", max_model_len, 1, "the longest request, in tokens")
    require_int("block_size", block_size, 1, "16 is the usual choice")
    for length in lengths:
        require_int("a length", length, 0, "a reservation holds no more", max_model_len)
    in_blocks = sum(-(-length // block_size) * block_size for length in lengths)
    return Use(len(lengths) * max_model_len, sum(lengths), in_blocks)
