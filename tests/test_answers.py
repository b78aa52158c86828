"""Questions that are checked like code: what is right, what is told of a wrong answer."""

from __future__ import annotations

import importlib
import itertools

import pytest

from minipaged.course import plain
from minipaged.course.catalog import catalog
from minipaged.course.checks.answers import NOT_INTS, Mistake, Question, answers_check
from minipaged.course.checks.base import Failure, check_of
from minipaged.course.expect import matches
from minipaged.course.script import run
from minipaged.course.verdict import judge

LESSONS = {
    exercise.id: importlib.import_module(
        f"minipaged.course.checks.lesson_{exercise.lesson_id}_answers"
    )
    for exercise in catalog().exercises
    if exercise.name == "answers"
}
EVERY = [question for module in LESSONS.values() for question in module.QUESTIONS]
CHECK = answers_check(
    [
        Question("a", "two", "One and one.", 2, (Mistake(3, "Too many.", 0.5),), "Count.", 0.1),
        Question("b", "order", "Backwards.", [2, 1], (Mistake([1, 2], "Forwards."),)),
    ]
)


def name_of(question: Question) -> str:
    return f"{question.letter} {question.about}"


def told(function) -> list[str]:
    """What is said of each letter: reason and rule; "" if it is right."""
    cases = CHECK.visible()
    seen = [run(case.operations, function) for case in cases]
    problems = [verdict.problem for verdict in judge(CHECK, cases, seen, "answers")]
    return [f"{p.reason} {p.rule}".strip() if p else "" for p in problems]


def test_the_course_asks_its_questions_with_it():
    for exercise_id, module in LESSONS.items():
        assert check_of(catalog().exercise(exercise_id)) is module.CHECK
    assert LESSONS


def test_a_right_answer_passes_within_its_tolerance():
    assert told(lambda: {"a": 2, "b": [2, 1]}) == ["", ""]
    assert told(lambda: {"a": 2.09, "b": [2, 1], "z": None}) == ["", ""]
    assert told(lambda: {"a": 2.11, "b": (2, 1)})[0] == "Count."


def test_a_wrong_answer_is_told_with_what_is_behind_it():
    assert told(lambda: {"a": 3, "b": [1, 2]}) == ["Too many. Count.", "Forwards."]
    assert told(lambda: {"a": 2.6, "b": [2, 1, 0]}) == ["Too many. Count.", ""]


def test_right_numbers_with_a_decimal_point_are_told_so():
    assert told(lambda: {"a": 2, "b": [2.0, 1]}) == ["", NOT_INTS]
    assert told(lambda: {"a": 2, "b": [2.5, 1]}) == ["", ""]


def test_what_is_expected_is_not_shown():
    case = CHECK.visible()[0]
    [verdict] = judge(CHECK, [case], [run(case.operations, lambda: {"a": 9})], "answers")
    assert verdict.problem.expected == "another answer"


def test_a_missing_letter_and_a_missing_dict_are_told():
    form = "answers() takes nothing and returns a dict with the keys a to b."
    assert told(lambda: {"a": 2})[1].startswith("What was returned has no entry 'b'.")
    assert all(said.endswith(form) for said in told(lambda: None))
    assert all(said.endswith(form) for said in told(lambda count: {}))


ODD = [None, True, 10**400, -(10**400), 1e308, float("nan"), float("inf"), "x", [10**400], {1: 2}]


@pytest.mark.parametrize("odd", [*ODD, plain.Other("Thing"), plain.Array.of("int64", (1,), [2])])
def test_explain_takes_anything(odd):
    for case in CHECK.visible():
        for number, fault in itertools.product((0, 1), ("", "KeyError", "Strange")):
            said = CHECK.explain(Failure(case, number, None, odd, fault))
            assert isinstance(said, str)
            assert "Too many" not in said


@pytest.mark.parametrize("question", EVERY, ids=name_of)
def test_no_mistake_is_right_or_told_twice(question):
    assert matches(question.expected, question.answer)
    for mistake in question.mistakes:
        assert mistake.says
        assert not matches(question.expected, mistake.answer)
        if mistake.near:
            assert not matches(question.expected, mistake.answer - mistake.near)
            assert not matches(question.expected, mistake.answer + mistake.near)
    assert len({repr(mistake.answer) for mistake in question.mistakes}) == len(question.mistakes)
