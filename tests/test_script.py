"""Scripts with objects, and the plain data that passes between a learner's code and the verdict."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipaged.course import plain
from minipaged.course.checks.base import Check, Raises
from minipaged.course.script import Case, Operation, from_json, run, to_json
from minipaged.course.verdict import judge


class Three(int):
    """An int by inheritance."""


class Stack:
    """Something to write scripts for."""

    def __init__(self, items):
        self.items = items

    def push(self, item):
        self.items.append(item)

    def pop(self):
        return self.items.pop()


STACK_CASE = Case(
    "a stack",
    "Two in, one out.",
    (
        Operation(([],), keep="stack"),
        Operation((5,), "stack", "push"),
        Operation((), "stack", "pop"),
        Operation((), "stack", "pop"),
    ),
)
STACK_CHECK = Check(
    visible=lambda: [STACK_CASE],
    hidden=lambda seed: [],
    oracle=lambda case: [None, 5, Raises("LookupError")],
)


def verdict_on(subject):
    [verdict] = judge(STACK_CHECK, [STACK_CASE], [run(STACK_CASE.operations, subject)], "Stack")
    return verdict


def test_a_script_makes_an_object_and_calls_its_methods():
    assert verdict_on(Stack).passed


def test_a_refusal_that_does_not_come_is_a_failure():
    class Lenient(Stack):
        def pop(self):
            return self.items.pop() if self.items else None

    problem = verdict_on(Lenient).problem
    assert (problem.operation, problem.call) == (3, "stack.pop()")
    assert problem.reason == ("This call must be refused with a LookupError, but it was accepted.")


def test_a_failed_constructor_still_gives_one_observation_an_operation():
    class Broken:
        def __init__(self):
            pass

    assert len(run(STACK_CASE.operations, Broken)) == len(STACK_CASE.operations)
    problem = verdict_on(Broken).problem
    assert (problem.operation, problem.kind) == (0, "fault")


def test_changed_arguments_are_noticed():
    case = Case("sum", "", (Operation(([3, 1, 2],)),))
    check_of_sum = Check(lambda: [case], lambda seed: [], lambda case: [[1, 2, 3]])

    def sorts_in_place(items):
        items.sort()
        return list(items)

    [bad] = judge(check_of_sum, [case], [run(case.operations, sorts_in_place)], "f")
    [good] = judge(check_of_sum, [case], [run(case.operations, sorted)], "f")
    assert good.passed
    assert bad.problem.kind == "changed"
    assert (bad.problem.expected, bad.problem.got) == ("([3, 1, 2],), as it was", "([1, 2, 3],)")


def test_a_missing_observation_is_no_pass():
    with pytest.raises(ValueError, match="number of observations"):
        judge(STACK_CHECK, [STACK_CASE], [run(STACK_CASE.operations, Stack)[:-1]], "Stack")


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.integers() | st.text() | st.booleans(), inner)
    ),
    max_leaves=8,
)


@given(PLAIN)
def test_plain_data_survives_the_journey(value):
    there = json.loads(json.dumps(plain.encode(value)))
    assert plain.same(plain.decode(there), value)
    operation = Operation((value,), "pool", "free", "x")
    [back] = from_json(json.loads(json.dumps(to_json([operation]))))
    assert plain.same(back.args, operation.args)
    assert back[1:] == operation[1:]


@pytest.mark.parametrize(
    ("a", "b"), [(1, 1.0), (1, True), ((1,), [1]), ({1: 2}, {True: 2}), ([0], [False]), (0, None)]
)
def test_equal_is_not_the_same(a, b):
    assert not plain.same(a, b)
    assert plain.same(a, a)


def test_what_is_not_plain_is_refused_not_followed():
    endless: list = []
    endless.append(endless)
    for value in (endless, 1 << 5000, "x" * 10**6, object(), {1, 2}, [Three(1)]):
        there = plain.decode(plain.encode(value))
        assert not plain.same(there, value)
        assert not plain.same(there, there)


@pytest.mark.parametrize(
    "data", [{}, {"list": 3}, {"set": []}, {"dict": [[1]]}, [1], {"list": [{}]}]
)
def test_a_malformed_value_is_refused(data):
    with pytest.raises(ValueError):
        plain.decode(data)
