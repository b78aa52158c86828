"""Own parts that fill one field of the engine take turns: the latest, then each earlier one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from minipaged.course import mine
from minipaged.course.learner import mine_run
from minipaged.course.learner.desk import Desk
from minipaged.course.mine import Part

POLICIES = ("victim", "preemption", "admission", "order")


def turns(
    desk: Desk, parts: Sequence[Part], without: Collection[str]
) -> Iterator[tuple[str, list[Part]]]:
    """What is run: ("", parts) first, then for every own part of an earlier lesson that a later
    one stands in front of, what to say of it and the parts with it in that place."""
    yield "", list(parts)
    for place, part in enumerate(parts):
        left_out = {*without, part.exercise.id}
        while part.is_own:
            earlier = mine_run.latest_of(desk, part.exercise.component or "", left_out)
            if not earlier.is_own:
                break
            said = f"Now your {earlier.exercise.id} {earlier.exercise.name} in its turn:"
            yield said, [*parts[:place], earlier, *parts[place + 1 :]]
            left_out.add(earlier.exercise.id)
    yield from _policies_alone(desk, parts)


def _policies_alone(desk: Desk, parts: Sequence[Part]) -> Iterator[tuple[str, list[Part]]]:
    """Own policies are asked by the engine's scheduler; an own one decides by itself."""
    own = [part for part in parts if part.is_own]
    asked = [part.exercise for part in own if part.exercise.component in POLICIES]
    schedulers = [part for part in own if part.exercise.component == "scheduler"]
    if asked and schedulers:
        names = ", ".join(f"{exercise.id} {exercise.name}" for exercise in asked)
        said = f"Now the engine's own scheduler, which asks your {names}:"
        yield (
            said,
            [
                mine.reference(desk.course, part.exercise) if part in schedulers else part
                for part in parts
            ],
        )
