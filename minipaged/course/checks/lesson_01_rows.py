"""A memory as a row of slots, looked through slot by slot: the plain model of exercise 01.3.

Beside the right one stand wrong ones of the same kind, one a misconception.
"""

from __future__ import annotations

from typing import Any

from minipaged.course.checks.base import Raises
from minipaged.course.script import Operation

FREE = -1


class Row:
    """The memory as it should be: the owner of every slot, a number per allocation."""

    def __init__(self, num_slots: int) -> None:
        self.slots = [FREE] * num_slots
        self.count = 0

    def do(self, operation: Operation) -> Any:
        """What an operation answers: a value or Raises."""
        if operation.method in ("num_free", "largest_gap"):
            return getattr(self, operation.method)()
        return getattr(self, operation.method)(*operation.args)

    def gaps(self) -> list[tuple[int, int]]:
        """Start and length of each free stretch."""
        gaps: list[tuple[int, int]] = []
        for slot, owner in enumerate(self.slots):
            if owner == FREE and slot > 0 and self.slots[slot - 1] == FREE:
                gaps[-1] = (gaps[-1][0], gaps[-1][1] + 1)
            elif owner == FREE:
                gaps.append((slot, 1))
        return gaps

    def allocate(self, length: int) -> Any:
        """First fit."""
        if length < 1:
            return Raises("ValueError")
        fits = [gap for gap in self.gaps() if gap[1] >= length]
        return self.take(self.choose(fits), length) if fits else Raises("MemoryError")

    def choose(self, fits: list[tuple[int, int]]) -> int:
        """Where, of all gaps that are large enough."""
        return fits[0][0]

    def take(self, start: int, length: int) -> int:
        """Mark the slots as held."""
        self.slots[start : start + length] = [self.count] * length
        self.count += 1
        return start

    def free(self, start: int) -> Any:
        """Give back what starts there."""
        if not self.starts(start):
            return Raises("ValueError")
        owner = self.slots[start]
        self.slots = [FREE if other == owner else other for other in self.slots]
        return None

    def starts(self, slot: int) -> bool:
        """Whether an allocation starts at a slot."""
        if not 0 <= slot < len(self.slots) or self.slots[slot] == FREE:
            return False
        return slot == 0 or self.slots[slot - 1] != self.slots[slot]

    def num_free(self) -> int:
        """Free slots."""
        return self.slots.count(FREE)

    def largest_gap(self) -> int:
        """The longest free stretch."""
        return max((length for _, length in self.gaps()), default=0)

    def drawn(self) -> str:
        """A letter per allocation, a dot per free slot."""
        letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        return "".join("." if o == FREE else letters[o % 26] for o in self.slots)


class BestFit(Row):
    """Takes the smallest gap that is large enough."""

    def choose(self, fits: list[tuple[int, int]]) -> int:
        return min(fits, key=lambda gap: gap[1])[0]


class WorstFit(Row):
    """Takes the largest gap."""

    def choose(self, fits: list[tuple[int, int]]) -> int:
        return max(fits, key=lambda gap: gap[1])[0]


class LastFit(Row):
    """Takes the last gap."""

    def choose(self, fits: list[tuple[int, int]]) -> int:
        return fits[-1][0]


class NextFit(Row):
    """Goes on behind the last allocation."""

    last = 0

    def choose(self, fits: list[tuple[int, int]]) -> int:
        return next((gap[0] for gap in fits if gap[0] >= self.last), fits[0][0])

    def take(self, start: int, length: int) -> int:
        self.last = start
        return Row.take(self, start, length)


class StrictFit(Row):
    """Wants a gap that is larger than what is asked for."""

    def allocate(self, length: int) -> Any:
        fits = [gap for gap in self.gaps() if gap[1] > length]
        return self.take(self.choose(fits), length) if fits else Raises("MemoryError")


class Unmerged(Row):
    """Leaves every freed stretch a gap of its own."""

    merges = (False, False)  # with the gap before, with the gap behind

    def __init__(self, num_slots: int) -> None:
        Row.__init__(self, num_slots)
        self.pieces = [(0, num_slots)]

    def gaps(self) -> list[tuple[int, int]]:
        return [piece for piece in self.pieces if piece[1]]

    def take(self, start: int, length: int) -> int:
        at = next(k for k, piece in enumerate(self.pieces) if piece[0] == start and piece[1])
        self.pieces[at] = (start + length, self.pieces[at][1] - length)
        return Row.take(self, start, length)

    def free(self, start: int) -> Any:
        length = self.slots.count(self.slots[start]) if self.starts(start) else 0
        answer = Row.free(self, start)
        if answer is None:
            before, behind = self.merges
            pieces = self.gaps()
            left = next((p for p in pieces if p[0] + p[1] == start), None) if before else None
            right = next((p for p in pieces if p[0] == start + length), None) if behind else None
            pieces = [piece for piece in pieces if piece not in (left, right)]
            first = left[0] if left else start
            whole = length + (left[1] if left else 0) + (right[1] if right else 0)
            self.pieces = sorted([*pieces, (first, whole)])
        return answer


class MergesBehind(Unmerged):
    """Merges a freed stretch with the gap behind it only."""

    merges = (False, True)


class MergesBefore(Unmerged):
    """Merges a freed stretch with the gap before it only."""

    merges = (True, False)
