"""What a verdict says: of a changed argument, of memory, of the kind of an answer."""

from __future__ import annotations

import pytest

from minipaged.course import plain
from minipaged.course.checks.base import Check
from minipaged.course.outcome import outcome
from minipaged.course.plain import Array, Kept
from minipaged.course.script import Case, Fault, Observation, Operation, run
from minipaged.course.verdict import judge

POOL = Operation((Array.of("float32", (2,), [1, 2]),), how="give", keep="pool")


def problem_of(operations, answers, subject, **options):
    """The problem of the one case, with an `explain` that always has something to say."""
    case = Case("a case", "A story.", tuple(operations))
    check = Check(
        lambda: [case],
        lambda seed: [],
        lambda case: answers,
        explain=lambda f: "A rule.",
        **options,
    )
    [verdict] = judge(check, [case], [run(case.operations, subject)], "f")
    return verdict.problem


def told_of(expected, observation, **options):
    """The problem of one call with this observation."""
    case = Case("a case", "A story.", (Operation((1,)),))
    check = Check(lambda: [case], lambda seed: [], lambda case: [expected], **options)
    [verdict] = judge(check, [case], [[observation]], "f")
    return verdict.problem


def test_the_argument_that_changed_is_named_and_shown_before_and_after():
    def greedy(pool, new, mapping):
        mapping.sort()

    ones = Array.of("float32", (2,), [1, 1])
    call = Operation((Kept("pool"), ones, [3, 1]))
    problem = problem_of([POOL, call], [None], greedy)
    assert problem.kind == "changed"
    assert problem.reason == "The call changed its argument number 3. Work on a copy."
    assert (problem.expected, problem.got) == ("[3, 1], as it was", "[1, 3]")
    assert problem.rule == ""
    assert problem.discreet_reason == "The call changed what it was given. Work on a copy."
    assert "Kept" not in repr([problem.expected, problem.got, problem.call])


def test_behind_a_changed_argument_stands_no_other_advice(tmp_path):
    from minipaged.course.catalog import Exercise

    case = Case("a case", "A story.", (Operation(([2, 1],)),))
    check = Check(
        lambda: [case],
        lambda seed: [],
        lambda case: [[1, 2]],
        diagnose=lambda rows: "A misconception.",
        explain=lambda failure: "A rule.",
    )

    def in_place(items):
        items.sort()
        return [0, 0]

    seen = [run(case.operations, in_place)]
    exercise = Exercise("07.1", "f", 2, "nowhere", ("look", "think", "write"))
    lines = "\n".join(outcome(exercise, check, seen).lines)
    assert "changed its argument number 1" in lines
    assert "misconception" not in lines and "rule" not in lines


def test_arguments_that_cannot_be_looked_at_are_changed_as_well():
    strange = Observation(None, None, "", {"other": "arguments that cannot be looked at"})
    problem = told_of(None, strange)
    assert problem.reason == "The call changed what it was given. Work on a copy."
    assert "cannot be looked at" in problem.got
    too_few = told_of(None, Observation(None, None, "", plain.encode(())))
    assert too_few.kind == "changed"


def test_no_exception_is_expected_where_nothing_is_returned():
    def fails(items):
        return items[7]

    problem = problem_of([Operation(([1],))], [None], fails)
    assert (problem.expected, problem.got) == ("no exception", "IndexError")
    problem = problem_of([Operation(([1],), keep="x")], [], fails, secret=True)
    assert problem.expected == "no exception"
    assert problem_of([Operation(([1],))], [None], fails, secret=True).expected == "another answer"
    assert problem_of([Operation(([1],))], [5], fails).expected == "5"
    assert problem_of([Operation(([1],))], [None], lambda items: 3).expected == "None"


@pytest.mark.parametrize(
    ("expected", "got", "words"),
    [
        (3, [3], "The result is a list, but an int"),
        ([3], 3, "The result is an int (a whole number), but a list is expected"),
        ((1,), {"a": 1}, "The result is a dict, but a tuple is expected"),
        ([3], None, "Nothing was returned (None), but a list is expected"),
    ],
)
def test_kinds_have_their_article(expected, got, words):
    assert words in told_of(expected, Observation(plain.encode(got))).reason


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Tensor", "sparse"),
        ("Tensor", "complex64"),
        ("Parameter", "`.detach()`"),
        ("ndarray", "torch.from_numpy"),
    ],
)
def test_a_tensor_of_another_kind_is_told_as_such(name, words):
    expected = Array.of("float32", (1,), [1])
    reason = told_of(expected, Observation({"other": name})).reason
    assert words in reason and "class Tensor was returned, but a tensor" not in reason


def fault(*kinds, message="", source="x = bytearray(n)"):
    return Observation(None, Fault(list(kinds), message, 2, source))


MEMORY = "more memory than a cell may take"


def test_too_little_memory_is_told_as_such_and_a_refusal_of_ones_own_is_not():
    for observation in (
        fault("MemoryError", "Exception"),
        fault("_ArrayMemoryError", "MemoryError", "Exception", message="Unable to allocate 9 GiB"),
        fault("RuntimeError", "Exception", message="DefaultCPUAllocator: can't allocate memory"),
    ):
        problem = told_of(3, observation)
        assert MEMORY in problem.reason and MEMORY in problem.discreet_reason
        assert "line 2 of the cell" in problem.reason
    own = fault("MemoryError", "Exception", message="no gap", source='raise MemoryError("no gap")')
    assert MEMORY not in told_of(3, own).reason
    assert MEMORY not in told_of(3, fault("ValueError", "Exception")).reason
