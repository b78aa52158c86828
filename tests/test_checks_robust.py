"""Whatever a learner's code answers, a check has words for it and does not fall over itself."""

from __future__ import annotations

import pytest

from minipaged.course.catalog import catalog
from minipaged.course.checks.base import Failure, Row, check_of
from minipaged.course.expect import has_type
from minipaged.course.plain import Array, Other

ODD = [
    *(None, True, 0, -1, 2**1000 - 1, 10**400, -(10**400), 3.5, float("nan"), float("inf")),
    *("x", "", [], [None], [10**400], (1, 2), (10**400, 1, 1)),
    *({}, {"a": 1}, Other("Thing"), [[1, "x"], 2], Array.of("float32", (2,), [1, 2])),
    *(Array.of("float64", (0,), []), [Other("Thing")], list(range(50))),
]
FAULTS = ("ValueError", "IndexError", "MemoryError", "KeyError", "TypeError", "Strange")
EXERCISES = catalog().exercises


def steps(check):
    """Visible and some hidden cases, with their operations and what is expected of them."""
    for case in [*check.visible(), *check.hidden(3)[:3]]:
        expected = iter(check.oracle(case))
        pairs = [(n, None if o.keep else next(expected)) for n, o in enumerate(case.operations)]
        assert next(expected, "nothing left") == "nothing left", case.name
        yield case, pairs


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_every_odd_answer_can_be_explained(exercise):
    check = check_of(exercise)
    for case, pairs in steps(check):
        for number, expected in [pairs[0], *pairs[-3:]]:
            # a hostile process may report a value where the result was to be kept, too
            answers = [(got, "") for got in ODD]
            answers += [(None, fault) for fault in FAULTS]
            answers += [(got, "KeyError") for got in ODD[:3]]
            for got, fault in answers:
                assert isinstance(check.explain(Failure(case, number, expected, got, fault)), str)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_odd_answers_can_be_diagnosed_together(exercise):
    check = check_of(exercise)
    asked = [
        (case.operations[number].args, expected)
        for case, pairs in steps(check)
        for number, expected in pairs
        if not case.operations[number].keep
    ]
    for got in ODD:
        rows = [Row(args, expected, got) for args, expected in asked if has_type(expected, got)]
        assert isinstance(check.diagnose(rows), str)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_a_picture_can_be_drawn_before_every_step(exercise):
    check = check_of(exercise)
    for case in check.visible():
        for number in range(len(case.operations)):
            assert isinstance(check.picture(case, number), str)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_every_seed_gives_as_many_hidden_cases(exercise):
    check = check_of(exercise)
    assert len({len(check.hidden(seed)) for seed in range(10)}) == 1
    assert len({case.name for case in check.visible()}) == len(check.visible())
