"""06.2: first come, first served, done on numbers alone, rightly or with one flaw.

PlainDesk answers the calls of fixture_sched.SchedulerDesk and has no scheduler, no blocks and no
tokens: each request is a few numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Row:
    """One request. blocks: how many it holds. reason: why it ended, "" before."""

    name: str
    prompt: int
    most: int
    stop_at: Sequence[int]
    min_tokens: int
    outputs: list[int] = field(default_factory=list)
    computed: int = 0
    blocks: int = 0
    reason: str = ""

    @property
    def known(self) -> int:
        """Tokens that it has."""
        return self.prompt + len(self.outputs)


Share = tuple[Row, int, int]  # a request, the first token that it computes, how many


class PlainDesk:
    """flaw: the one thing that is done wrongly, "" for none."""

    def __init__(
        self, blocks: int, size: int, seats: int, budget: int, alone: bool = True, flaw: str = ""
    ) -> None:
        self.free, self.size, self.seats, self.budget = blocks, size, seats, budget
        self.slots, self.flaw = blocks * size, flaw
        self.rows: dict[str, Row] = {}
        self.running: list[Row] = []
        self.waiting: list[Row] = []

    def add(
        self,
        name: str,
        prompt: int,
        most: int,
        stop_at: Sequence[int] = (),
        min_tokens: int = 0,
    ) -> None:
        """A request arrives."""
        room = self.slots + 1 - prompt if self.flaw != "own limit" else most
        self.rows[name] = Row(name, prompt, min(most, room), stop_at, min_tokens)
        self.waiting.append(self.rows[name])

    def step(self) -> list[Any]:
        """One step: what each request computes, in order of arrival."""
        shares = self._plan()
        said = self._items(shares)
        for row, start, count in shares:
            row.computed = start + count
            if row.computed == row.known:
                self._take(row)
        return said

    def fail(self) -> list[Any]:
        """A step that is not carried out: all that run wait again, in their order."""
        said = self._items(self._plan())
        for row in reversed(self.running.copy()):
            self._preempt(row)
        return said

    def abort(self, name: str) -> None:
        """A request is not wanted any more."""
        if not self.rows[name].reason:
            self._end(self.rows[name], "abort")

    def queues(self) -> list[Any]:
        """Who runs, who waits, free blocks."""
        return [[row.name for row in self.running], [row.name for row in self.waiting], self.free]

    def outputs(self, name: str) -> list[int]:
        """Numbers of its outputs, 0 for a stop token."""
        return list(self.rows[name].outputs)

    def reason(self, name: str) -> str:
        """Why it ended, or ""."""
        return self.rows[name].reason

    def _plan(self) -> list[Share]:
        """Who computes how many tokens, and from which on."""
        early = self._enter(self.budget, 0) if self.flaw == "enters first" else []
        shares = self._go_on([row for row, _, _ in early])
        if early:
            return [one for one in early if one[0] in self.running] + shares
        if self.flaw == "static" and self.running:
            return shares
        used = 0 if self.flaw == "decodes are free" else sum(count for _, _, count in shares)
        return shares + self._enter(self.budget - used, len(shares))

    def _go_on(self, but: list[Row]) -> list[Share]:
        """The shares of those that run."""
        shares: list[Share] = []
        for row in [one for one in self.running if one not in but]:
            count = row.known - row.computed if self.flaw == "chunks" else 1
            while row in self.running and not self._grow(row, count):
                self._preempt(self._victim(row))
            if row in self.running:
                shares.append((row, row.computed, count))
        return [one for one in shares if one[0] in self.running]

    def _victim(self, needy: Row) -> Row:
        if self.flaw == "first goes":
            return self.running[0]
        return needy if self.flaw == "needy goes" else self.running[-1]

    def _enter(self, left: int, planned: int) -> list[Share]:
        """Lets waiting requests in; `planned` requests compute in this step already."""
        entered: list[Share] = []
        for row in self.waiting.copy():
            count = row.prompt if self.flaw == "prompt only" else row.known
            if self.flaw == "chunks":
                count = min(count, left)
            full = len(self.running) >= self.seats or (self.flaw == "one a step" and entered)
            too_long = self._is_too_long(count, left, planned + len(entered))
            if full or too_long or not count or not self._grow(row, count):
                if self.flaw == "overtakes":
                    continue
                break
            self.waiting.remove(row)
            self.running.append(row)
            entered.append((row, 0, count))
            left -= count if self.flaw != "budget not lowered" else 0
        return entered

    def _is_too_long(self, count: int, left: int, others: int) -> bool:
        """Whether the budget keeps a request out."""
        if self.flaw == "no budget" or not others:
            return False
        if self.flaw == "too long for all":  # and so let in beside others
            return left < count <= self.budget
        return count > left - (self.flaw == "must be shorter")

    def _grow(self, row: Row, count: int) -> bool:
        ahead = row.prompt + row.most if self.flaw == "reserves" else row.computed + count
        missing = max(0, -(-ahead // self.size) - row.blocks)
        is_new = not row.blocks and self.running
        if missing + (self.flaw == "leaves one" and bool(is_new)) > self.free:
            return False
        self.free -= missing
        row.blocks += missing
        return True

    def _preempt(self, row: Row) -> None:
        self.running.remove(row)
        self._release(row)
        self.waiting.insert(0, row)

    def _release(self, row: Row) -> None:
        self.free += row.blocks
        row.blocks = row.computed = 0

    def _take(self, row: Row) -> None:
        """One new output."""
        number = len(row.outputs) + 1
        is_stop = number in row.stop_at
        row.outputs.append(0 if is_stop else number)
        enough = number > row.min_tokens
        if self.flaw == "min counted twice":
            enough = number > row.min_tokens + 1
        if self.flaw == "min reached":
            enough = number >= row.min_tokens
        late = {"one late": 1, "one early": -1}.get(self.flaw, 0)
        is_long = number >= max(1, row.most + late)
        if self.flaw == "length first" and is_long:
            self._end(row, "length")
        elif is_stop and (enough or self.flaw == "min ignored") and self.flaw != "never stops":
            self._end(row, "stop")
        elif is_long:
            self._end(row, "length")

    def _end(self, row: Row, reason: str) -> None:
        row.reason = reason
        (self.running if row in self.running else self.waiting).remove(row)
        self._release(row)

    def _items(self, shares: list[Share]) -> list[Any]:
        """As fixture_sched tells a plan; a request samples if all its known tokens are computed."""
        order = list(self.rows)
        by_arrival = sorted(shares, key=lambda one: order.index(one[0].name))
        return [
            (row.name, start, count, start + count == row.known) for row, start, count in by_arrival
        ]
