"""The catalog: the course's own one is whole, and a broken one says what to mend."""

from __future__ import annotations

import dataclasses

import pytest

from minipaged.course.catalog import NUM_HINTS, CatalogError, catalog, load
from minipaged.course.checks.base import check_of

GOOD = """
[[lesson]]
id = "00"
topic = "tour"
title = "A tour"
minutes = 20

[[exercise]]
id = "00.1"
name = "blocks_needed"
points = 1
check = "lesson_00"
hints = ["a", "b", "c"]
"""


@pytest.fixture
def read(tmp_path):
    """Loads a catalog from text."""

    def read(text: str):
        path = tmp_path / "catalog.toml"
        path.write_text(text, encoding="utf-8")
        return load(path)

    return read


def test_the_course_has_a_check_for_every_exercise():
    for exercise in catalog().exercises:
        check = check_of(exercise)
        assert check.visible()
        assert check.num_hidden > 0 or exercise.name == "answers"  # its questions are all told
        assert len(exercise.hints) == NUM_HINTS  # what they say is checked by `dev check`


def test_entries_are_frozen_and_named_after_their_ids():
    lesson, exercise = catalog().lesson("00"), catalog().exercise("00.1")
    assert lesson.stem == "00_tour"
    assert (exercise.lesson_id, exercise.name) == ("00", "blocks_needed")
    assert (exercise.solution_cell, exercise.check_cell) == ("ex-00-1", "check-00-1")
    assert catalog().exercises_of("00") == [exercise]
    with pytest.raises(dataclasses.FrozenInstanceError):
        exercise.points = 100


def test_an_unknown_id_names_those_that_exist():
    with pytest.raises(ValueError, match=r"no exercise '00\.7'; there are: 00\.1"):
        catalog().exercise("00.7")


def test_fields_that_may_be_left_out(read):
    exercise = read(GOOD).exercise("00.1")
    assert (exercise.claims, exercise.cases, exercise.component) == ((), (), None)
    assert read(GOOD + 'component = "block_pool"\nclaims = ["E3"]\ncases = [11]\n')


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('id = "00"', 'id = "0"', "lesson '0': id is '0': give two digits"),
        ("minutes = 20", "minutes = 0", "minutes is 0: give a whole number of minutes"),
        ("minutes = 20", "", "minutes is missing"),
        ("minutes = 20", "minuts = 20", "unknown field 'minuts': did you mean minutes?"),
        ('topic = "tour"', 'topic = "The Tour"', "topic is 'The Tour': give small letters"),
        ("points = 1", "points = true", "points is True: give a whole number, at least 0"),
        ('"a", "b", "c"', '"a", "b"', "give exactly 3 hints"),
        ('"a", "b", "c"', '"a", "b", " "', "give exactly 3 hints, none of them empty"),
        ('"blocks_needed"', '"blocks needed"', "give the name that the learner's cell must define"),
        ('"blocks_needed"', '"class"', "give the name that the learner's cell must define"),
        ('id = "00.1"', 'id = "01.1"', "there is no lesson '01': add it, or mend the id"),
        ("points = 1", 'points = 1\ncomponent = "pool"', "give a field of Components"),
        ("points = 1", 'points = 1\nclaims = ["3"]', "claims is ['3']: give claim ids"),
        ("[[lesson]]", "[[lessons]]", "unknown table 'lessons': use lesson or exercise"),
        ("minutes = 20", "minutes = ", "not valid TOML"),
    ],
)
def test_a_broken_catalog_says_where_and_what_to_mend(read, old, new, message):
    assert old in GOOD
    with pytest.raises(CatalogError) as caught:
        read(GOOD.replace(old, new, 1))
    assert message in str(caught.value)
    assert "catalog.toml" in str(caught.value)


def test_ids_are_unique_and_sorted(read):
    _, first = GOOD.split("[[exercise]]")
    with pytest.raises(CatalogError, match=r"two exercises have the id '00\.1'"):
        read(GOOD + "[[exercise]]" + first)
    with pytest.raises(CatalogError, match=r"exercise '00\.1' stands behind '00\.2': sort by id"):
        read(GOOD.replace('"00.1"', '"00.2"') + "[[exercise]]" + first)
