"""The syllabus says of every lesson what the catalog says."""

from __future__ import annotations

import re
from pathlib import Path

from minipaged.course.catalog import catalog

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| \[(\d\d)\]\((\S+)\) \| ([^|]+) \| ([^|]+) \| (\d+) min \| ([^|]+) \|$", re.M)


def test_ready_lessons_are_those_of_the_catalog():
    text = (ROOT / "lessons/README.md").read_text(encoding="utf-8")
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
    text = (ROOT / "lessons/README.md").read_text(encoding="utf-8")
    planned = re.findall(r"^\| (\d\d) \|", text, re.M)
    ready = {lesson.id for lesson in catalog().lessons}
    assert planned and not ready & set(planned)
    assert sorted(ready | set(planned)) == [f"{n:02}" for n in range(18)]
