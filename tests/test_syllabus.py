"""The syllabus says of every lesson what the catalog says."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from minipaged.course.catalog import catalog

ROOT = Path(__file__).parents[1]
README = ROOT / "lessons/README.md"
ROW = re.compile(r"^\| \[(\d\d)\]\((\S+)\) \| ([^|]+) \| ([^|]+) \| (\d+) min \| ([^|]+) \|$", re.M)
ASKED = re.compile(r"^\| ([QMDAOP]\d+) \| ([^|]+) \| ([^|]+) \|$", re.M)
PLACE = re.compile(r"waits for \d\d|\d\d open|\d\d\.(?:\?|\d(?: [a-z])?)")
READY = {lesson.id for lesson in catalog().lessons}


def test_ready_lessons_are_those_of_the_catalog():
    text = README.read_text(encoding="utf-8")
    rows = {match[1]: match.groups() for match in ROW.finditer(text)}
    assert list(rows) == [lesson.id for lesson in catalog().lessons]
    for lesson in catalog().lessons:
        _, link, title, needs, minutes, builds = rows[lesson.id]
        assert (ROOT / "lessons" / link).is_file(), link
        assert (title, int(minutes)) == (lesson.title, lesson.minutes)
        assert needs.strip()
        names = [e.name for e in catalog().exercises_of(lesson.id) if e.name != "answers"]
        assert re.findall(r"`(\w+)`", builds) == names


def test_what_is_planned_is_not_in_the_catalog():
    text = README.read_text(encoding="utf-8")
    planned = re.findall(r"^\| (\d\d) \|", text, re.M)
    ready = {lesson.id for lesson in catalog().lessons}
    assert planned and not ready & set(planned)
    assert sorted(ready | set(planned)) == [f"{n:02}" for n in range(18)]


def places() -> list[tuple[str, str]]:
    """Each row of the table of questions with each place that it names."""
    rows = ASKED.finditer(README.read_text(encoding="utf-8"))
    return [(row[1], place) for row in rows for place in row[3].strip().split(", ")]


def fault_of(place: str) -> str:
    """What is wrong with a place such as "03.4 a"; "" if nothing is."""
    if not PLACE.fullmatch(place):
        return "is no place"
    lesson = place[-2:] if place.startswith("waits") else place[:2]
    if place.startswith("waits") or place.endswith("?"):
        return "is ready: name the exercise or letter" if lesson in READY else ""
    if place.endswith("open"):
        sources = (ROOT / "solutions").glob(f"{lesson}_*.py")
        return "" if any("open=true" in path.read_text("utf-8") for path in sources) else "has none"
    return fault_of_answer(place)


def fault_of_answer(place: str) -> str:
    """What is wrong with an exercise or a letter that must be there."""
    exercise_id, _, letter = place.partition(" ")
    try:
        exercise = catalog().exercise(exercise_id)
    except ValueError as error:
        return str(error)
    if not letter:
        return ""
    if exercise.name != "answers":
        return "has no letters"
    module = importlib.import_module(f"minipaged.course.checks.lesson_{place[:2]}_answers")
    letters = {question.letter for question in module.QUESTIONS}
    return "" if letter in letters else f"has the letters {sorted(letters)}"


def test_every_question_of_the_texts_is_in_the_table_once():
    rows = [row[1] for row in ASKED.finditer(README.read_text(encoding="utf-8"))]
    kinds = {"Q": 10, "M": 7, "D": 3, "A": 3, "O": 3, "P": 8}
    assert rows == [f"{kind}{n}" for kind, count in kinds.items() for n in range(1, count + 1)]


def test_every_place_of_the_table_exists():
    wrong = {f"{row}: {place} {fault}" for row, place in places() if (fault := fault_of(place))}
    assert not wrong


def test_a_place_that_does_not_exist_is_noticed():
    for place in ("99.1", "03.9", "03.4 z", "03.1 a", "03.?", "waits for 03", "98 open", "", "3"):
        assert fault_of(place)
    for place in ("03.1", "03.4 a", "03 open", "98.?", "waits for 98"):
        assert not fault_of(place)
