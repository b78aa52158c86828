"""What `minipaged mine` runs one after the other: all own parts, then those that are behind others.

Where a later lesson extends a part (the pool, the table), the latest serves. Two schedulers or two
prefix caches are two ways to do one thing: each has a turn. A kernel in Triton's interpreter takes
a second for a token, so it has a turn of its own, behind the others, and writes a few words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from minipaged.course import mine
from minipaged.course.learner import mine_run
from minipaged.course.learner.desk import Desk
from minipaged.course.mine import Part

# what the engine's own scheduler asks; one of the learner's decides without
ASKED = ("victim", "preemption", "admission", "order", "prefix_cache")


def turns(
    desk: Desk, parts: Sequence[Part], without: Collection[str]
) -> Iterator[tuple[str, list[Part]]]:
    """What to say of each turn, and its parts: ("", all but the kernels) first."""
    kernels = [part for part in parts if part.is_own and part.exercise.needs]
    parts = _with_quick(desk, parts, without)
    if not kernels or any(part.is_own for part in parts):
        yield "", list(parts)
    for part in _earlier(desk, parts, "scheduler", without):
        yield f"Now your {_name(part)} in its turn:", _with(parts, part)
    if not _is_own(parts, "scheduler"):
        plain = list(parts)
    else:
        plain = [_reference(desk, p) if _fills(p) == "scheduler" else p for p in parts]
        asked = ", ".join(_name(part) for part in plain if part.is_own and _fills(part) in ASKED)
        if asked:
            yield f"Now the engine's own scheduler, which asks your {asked}:", plain
    for part in _earlier(desk, parts, "prefix_cache", without):
        yield f"Now your {_name(part)} in its turn:", _with(plain, part)
    for kernel in kernels:
        own = [kernel, *_earlier(desk, [kernel], _fills(kernel), without)]
        for part in (one for one in own if one.exercise.needs):
            yield f"Now your {_name(part)} in its turn, for a few words:", _with(parts, part)


def _with_quick(desk: Desk, parts: Sequence[Part], without: Collection[str]) -> list[Part]:
    """The parts, with the latest that is no kernel in the place of one."""
    quick = []
    for part in parts:
        left_out = set(without)
        while part.is_own and part.exercise.needs:
            left_out.add(part.exercise.id)
            part = mine_run.latest_of(desk, _fills(part), left_out)
        quick.append(part)
    return quick


def _earlier(
    desk: Desk, parts: Sequence[Part], component: str, without: Collection[str]
) -> Iterator[Part]:
    """The own parts that a later own one stands in front of, latest first."""
    left_out = set(without)
    for part in parts:
        while _fills(part) == component and part.is_own:
            left_out.add(part.exercise.id)
            part = mine_run.latest_of(desk, component, left_out)
            if part.is_own:
                yield part


def _with(parts: Sequence[Part], one: Part) -> list[Part]:
    return [one if _fills(part) == _fills(one) else part for part in parts]


def _is_own(parts: Sequence[Part], component: str) -> bool:
    return any(part.is_own for part in parts if _fills(part) == component)


def _reference(desk: Desk, part: Part) -> Part:
    return mine.reference(desk.course, part.exercise)


def _fills(part: Part) -> str:
    return part.exercise.component or ""


def _name(part: Part) -> str:
    return f"{part.exercise.id} {part.exercise.name}"
