"""The catalog: one file, catalog.toml, says what the course consists of. No torch.

[[lesson]]   id, topic (part of its file names), title, minutes (to work through it).
[[exercise]] id, name (of the function or class that the learner defines), points, check (module in
             checks/), three hints, claims and cases that it uses, component (the field of
             Components that it can fill; left out if none), needs ("triton" if it cannot be run
             without; see needs.py).
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import itertools
import keyword
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CATALOG = Path(__file__).with_name("catalog.toml")
NUM_HINTS = 3


class CatalogError(ValueError):
    """The catalog contradicts itself; the message says where and what to mend."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """One lesson; its files are called `stem`."""

    id: str
    topic: str
    title: str
    minutes: int

    @property
    def stem(self) -> str:
        """What the lesson's files are called, without ending: "00_tour"."""
        return f"{self.id}_{self.topic}"


@dataclass(frozen=True, slots=True)
class Exercise:
    """One function or class that the learner writes."""

    id: str
    name: str
    points: int
    check: str
    hints: tuple[str, ...]
    claims: tuple[str, ...] = ()
    cases: tuple[int, ...] = ()
    component: str | None = None
    needs: str | None = None

    @property
    def lesson_id(self) -> str:
        """The lesson that it belongs to."""
        return self.id.partition(".")[0]

    @property
    def solution_cell(self) -> str:
        """Grade id of the cell that the learner fills in."""
        return "ex-" + self.id.replace(".", "-")

    @property
    def check_cell(self) -> str:
        """Grade id of the cell that checks it."""
        return "check-" + self.id.replace(".", "-")


@dataclass(frozen=True, slots=True)
class Catalog:
    """All lessons and exercises, each in the order of the course."""

    lessons: tuple[Lesson, ...]
    exercises: tuple[Exercise, ...]

    def lesson(self, lesson_id: str) -> Lesson:
        """The lesson with this id; ValueError names those that exist."""
        return _find(self.lessons, "lesson", lesson_id)

    def exercise(self, exercise_id: str) -> Exercise:
        """The exercise with this id; ValueError names those that exist."""
        return _find(self.exercises, "exercise", exercise_id)

    def exercises_of(self, lesson_id: str) -> list[Exercise]:
        """The exercises of one lesson, in order."""
        return [e for e in self.exercises if e.lesson_id == lesson_id]

    def needs_of(self, lesson_id: str) -> str | None:
        """What a lesson's notebooks need: what one of its exercises does."""
        return next((e.needs for e in self.exercises_of(lesson_id) if e.needs), None)


@functools.cache
def catalog() -> Catalog:
    """The course's own catalog (read once, then kept)."""
    return load(CATALOG)


def load(path: Path) -> Catalog:
    """Read a catalog; CatalogError says where it is wrong and what to mend."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CatalogError(f"{path.name} is not valid TOML in UTF-8: {error}") from None
    unknown = set(data) - {"lesson", "exercise"}
    if unknown:
        raise CatalogError(f"{path.name}: unknown table {min(unknown)!r}: use lesson or exercise")
    lessons, exercises = (
        [_read(cls, entry, number, path.name) for number, entry in enumerate(data.get(key, []), 1)]
        for cls, key in ((Lesson, "lesson"), (Exercise, "exercise"))
    )
    for kind, entries in (("lesson", lessons), ("exercise", exercises)):
        _require_order(path.name, kind, [e.id for e in entries])
    _require_lessons(path.name, lessons, exercises)
    return Catalog(tuple(lessons), tuple(exercises))


def _read(cls: Any, entry: dict[str, Any], number: int, file: str) -> Any:
    """One entry as a dataclass; every field is checked by its rule in _RULES."""
    where = f"{file}, {cls.__name__.lower()} {entry.get('id', f'number {number}')!r}"
    fields = {f.name: f for f in dataclasses.fields(cls)}
    for name in entry:
        if name not in fields:
            near = difflib.get_close_matches(name, fields, 1) or [", ".join(fields)]
            raise CatalogError(f"{where}: unknown field {name!r}: did you mean {near[0]}?")
    values = {}
    for name, field in fields.items():
        if name not in entry:
            if field.default is dataclasses.MISSING:
                raise CatalogError(f"{where}: {name} is missing: {_RULES[cls, name].wanted}")
            continue
        rule, value = _RULES[cls, name], entry[name]
        value = tuple(value) if isinstance(value, list) else value
        if not rule.holds(value):
            raise CatalogError(f"{where}: {name} is {entry[name]!r}: {rule.wanted}")
        values[name] = value
    return cls(**values)


@dataclass(frozen=True, slots=True)
class _Rule:
    holds: Callable[[Any], bool]
    wanted: str


def _matches(pattern: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def _int_from(low: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and value >= low


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value.isidentifier() and not keyword.iskeyword(value)


def _each(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, tuple) and all(holds(item) for item in value)


def _are_hints(value: Any) -> bool:
    return _each(_matches(r"(?s).*\S.*"))(value) and len(value) == NUM_HINTS


def _is_component(value: Any) -> bool:
    from minipaged.components import Components

    return value in {field.name for field in dataclasses.fields(Components)}


_RULES: dict[tuple[Any, str], _Rule] = {
    (Lesson, "id"): _Rule(_matches(r"\d\d"), "give two digits, such as '07'"),
    (Lesson, "topic"): _Rule(_matches("[a-z0-9_]+"), "give small letters, digits and _ only"),
    (Lesson, "title"): _Rule(_matches(r".*\S.*"), "give a title of one line"),
    (Lesson, "minutes"): _Rule(_int_from(1), "give a whole number of minutes, at least 1"),
    (Exercise, "id"): _Rule(_matches(r"\d\d\.[1-9]"), "give lesson and number, such as '07.2'"),
    (Exercise, "name"): _Rule(_is_name, "give the name that the learner's cell must define"),
    (Exercise, "points"): _Rule(_int_from(0), "give a whole number, at least 0"),
    (Exercise, "check"): _Rule(_is_name, "give the name of a module in minipaged/course/checks"),
    (Exercise, "hints"): _Rule(_are_hints, f"give exactly {NUM_HINTS} hints, none of them empty"),
    (Exercise, "claims"): _Rule(_each(_matches(r"[EC]\d+")), "give claim ids, such as ['E3']"),
    (Exercise, "cases"): _Rule(_each(_int_from(1)), "give case numbers, such as [11]"),
    (Exercise, "component"): _Rule(_is_component, "give a field of Components, or leave it out"),
    (Exercise, "needs"): _Rule(_matches("triton"), "give 'triton', or leave it out"),
}


def _require_order(file: str, kind: str, ids: list[str]) -> None:
    for before, after in itertools.pairwise(ids):
        if before == after:
            raise CatalogError(f"{file}: two {kind}s have the id {after!r}: give one another id")
        if before > after:
            raise CatalogError(f"{file}: {kind} {after!r} stands behind {before!r}: sort by id")


def _require_lessons(file: str, lessons: list[Lesson], exercises: list[Exercise]) -> None:
    known = {lesson.id for lesson in lessons}
    for exercise in exercises:
        if exercise.lesson_id not in known:
            raise CatalogError(
                f"{file}, exercise {exercise.id!r}: there is no lesson {exercise.lesson_id!r}: "
                "add it, or mend the id"
            )


def _find(entries: tuple[Any, ...], kind: str, wanted: str) -> Any:
    for entry in entries:
        if entry.id == wanted:
            return entry
    known = ", ".join(entry.id for entry in entries) or "none yet"
    raise ValueError(f"there is no {kind} {wanted!r}; there are: {known}")
