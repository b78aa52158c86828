"""Own parts that fill one field of the engine take turns: the latest, then each earlier one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from minipaged.course.learner import mine_run
from minipaged.course.learner.desk import Desk
from minipaged.course.mine import Part


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
