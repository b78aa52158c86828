"""Mutants that survive their check, and why some of them may. survivors.toml holds the reasons:

    [[survivor]]
    exercise = "02.1"
    where = "FreeQueue.remove"   # "" outside of functions
    before = "if a <= b:"        # the lines that differ, each stripped
    after = "if a < b:"
    why = "…"

A reason holds for these lines wherever else the solution changes. It is stale once no mutant that
survives has them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from minipaged.course.catalog import Exercise
from minipaged.course.dev.mutants import Mutant

if TYPE_CHECKING:
    from rich.console import Console

SURVIVORS = Path(__file__).with_name("survivors.toml")
_FIELDS = ("exercise", "where", "before", "after", "why")


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a mutant that survives is no hole in the check."""

    exercise: str
    where: str
    before: str
    after: str
    why: str

    def is_of(self, exercise_id: str, mutant: Mutant) -> bool:
        """Whether this mutant is meant."""
        key = (exercise_id, mutant.where, mutant.before, mutant.after)
        return key == (self.exercise, self.where, self.before, self.after)


@dataclass(frozen=True, slots=True)
class Result:
    """One exercise. made: mutants that there are; tried: of them were run. The explained come with
    their explanation. stale: explanations of nothing; known only if all mutants were run.
    timed_out: how many did not end in time."""

    exercise: Exercise
    made: int
    tried: int
    unexplained: tuple[Mutant, ...]
    explained: tuple[tuple[Mutant, Explanation], ...] = ()
    stale: tuple[Explanation, ...] = ()
    timed_out: int = 0

    @property
    def killed(self) -> int:
        """How many the check failed, in time."""
        return self.tried - self.timed_out - len(self.unexplained) - len(self.explained)


def explanations(path: Path = SURVIVORS) -> list[Explanation]:
    """What survivors.toml says; ValueError names what is wrong with it."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path.name} is not valid TOML in UTF-8: {error}") from None
    found = []
    for number, entry in enumerate(data.get("survivor", []), 1):
        if set(entry) != set(_FIELDS) or not all(type(value) is str for value in entry.values()):
            raise ValueError(f"{path.name}, entry {number}: give {', '.join(_FIELDS)}, all as text")
        if not entry["why"].strip():
            raise ValueError(f"{path.name}, entry {number}: why does it make no difference?")
        found.append(Explanation(**entry))
    return found


def sort_out(
    exercise: Exercise,
    made: int,
    tried: int,
    survivors: Sequence[Mutant],
    known: Sequence[Explanation],
) -> Result:
    """The result of an exercise, of whose mutants so many were made and so many tried."""
    own = [one for one in known if one.exercise == exercise.id]
    explained, unexplained = [], []
    for mutant in survivors:
        reason = next((one for one in own if one.is_of(exercise.id, mutant)), None)
        if reason is None:
            unexplained.append(mutant)
        else:
            explained.append((mutant, reason))
    used = [reason for _, reason in explained]
    stale = [one for one in own if one not in used] if tried == made else []
    return Result(exercise, made, tried, tuple(unexplained), tuple(explained), tuple(stale))


def render(result: Result, console: Console) -> None:
    """Print one exercise: a line of counts, then every survivor with its diff or its reason."""
    from rich.text import Text

    console.print(Text(_counts(result), "bold"), soft_wrap=True)
    for mutant in result.unexplained:
        console.print(Text(f"  survives   {_place(mutant)}", "red"), soft_wrap=True)
        for line in mutant.diff.splitlines():
            style = {"-": "red", "+": "green"}.get(line[:1], "dim")
            console.print(Text(f"    {line}", style), soft_wrap=True)
    for mutant, reason in result.explained:
        console.print(Text(f"  explained  {_place(mutant)}: {reason.why}"), soft_wrap=True)
    for reason in result.stale:
        said = f"  stale      {reason.where or 'the cell'}: {reason.before!r} -> {reason.after!r}"
        line = f"{said} survives no more: take it out of {SURVIVORS.name}"
        console.print(Text(line, "yellow"), soft_wrap=True)


def _counts(result: Result) -> str:
    exercise, tried = result.exercise, f"{result.tried} mutants"
    if result.tried < result.made:
        tried = f"{result.tried} of {result.made} mutants"
    noticed = result.killed + result.timed_out
    rate = f"{100 * noticed / result.tried:.1f} %" if result.tried else "nothing to change"
    late = f" and {result.timed_out} timed out" if result.timed_out else ""
    return (
        f"{exercise.id} {exercise.name}: {tried}, {result.killed} killed{late} ({rate}), "
        f"{len(result.explained)} explained, {len(result.unexplained)} unexplained"
    )


def _place(mutant: Mutant) -> str:
    return f"line {mutant.line}, {mutant.where or 'outside of functions'} ({mutant.kind})"
