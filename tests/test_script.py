"""Scripts with objects, and the plain data that passes between a learner's code and the verdict."""

from __future__ import annotations

import json
import traceback

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
    assert (bad.problem.expected, bad.problem.got) == ("[3, 1, 2], as it was", "[1, 2, 3]")


def test_a_class_that_is_only_called_like_a_builtin_one_is_told_apart():
    own_memory_error = type("MemoryError", (Exception,), {})
    own_io_error = type("IOError", (OSError,), {})

    class Meta(type):
        __name__ = "LookupError"

    class Dressed(Exception, metaclass=Meta):
        pass

    def refuse(kind):
        raise kind("no")

    def kinds(kind):
        return run([Operation()], lambda: refuse(kind))[0].fault.kinds

    assert kinds(own_memory_error) == [
        "MemoryError (not the built-in one)",
        "Exception",
        "BaseException",
    ]
    assert kinds(own_io_error)[:2] == ["IOError (not the built-in one)", "OSError"]
    assert kinds(ZeroDivisionError)[:2] == ["ZeroDivisionError", "ArithmeticError"]
    assert kinds(Dressed) == ["Dressed", "Exception", "BaseException"]
    case = Case("refuse", "", (Operation(),))
    a_check = Check(lambda: [case], lambda seed: [], lambda case: [Raises("MemoryError")])
    [own] = judge(a_check, [case], [run(case.operations, lambda: refuse(own_memory_error))], "f")
    assert own.problem.reason.startswith(
        "This call must be refused with a MemoryError. Your code raised MemoryError (not the "
        "built-in one): no, in line "
    )
    assert own.problem.got == "MemoryError (not the built-in one)"
    assert "built-in" not in own.problem.discreet_reason


class Nameless(type):
    """Makes classes that do not want to say what they are called."""

    @property
    def __name__(cls):
        raise ValueError


class Shy(metaclass=Nameless):
    """An object of such a class."""


def test_whatever_a_call_does_to_its_arguments_there_is_one_observation():
    def add(items):
        items.append(Shy())
        return Shy()

    def fill(items):
        inner = items
        for _ in range(100_000):
            inner.append([])
            inner = inner[0]

    for spoil in (add, fill):
        [one] = run(
            [
                Operation(
                    ([],),
                )
            ],
            spoil,
        )
        assert one.fault is None
        assert one.args_after is not None
    assert run([Operation(([],))], add)[0].value == {"other": "Shy"}


def test_looking_at_the_arguments_afterwards_may_fail():
    """Code that makes the interpreter itself unable to go on is not stopped, but told apart."""
    import sys

    before = sys.getrecursionlimit()

    def narrow(items):
        for _ in range(40):
            items[:] = [list(items)]
        depth = len(traceback.extract_stack())
        sys.setrecursionlimit(depth + 30)

    try:
        observations = run([Operation(([],))], narrow)
    finally:
        sys.setrecursionlimit(before)
    [one] = observations
    assert one.fault is not None or one.args_after is not None


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
    "data",
    [
        *({}, {"list": 3}, {"set": []}, {"dict": [[1]]}, [1], {"list": [{}]}),
        *(2**1000, -(2**1000), 10**400, {"list": [10**400]}, {"dict": [[10**400, 1]]}),
    ],
)
def test_a_malformed_value_is_refused(data):
    with pytest.raises(ValueError):
        plain.decode(data)


def test_an_int_of_as_many_bits_as_are_allowed_is_read():
    assert [plain.decode(plain.encode(n)) for n in (2**1000 - 1, 1 - 2**1000)] == [
        2**1000 - 1,
        1 - 2**1000,
    ]
