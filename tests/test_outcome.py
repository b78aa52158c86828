"""The first failure of a script, as a learner reads it: the way there, the picture, the rule."""

from __future__ import annotations

import pytest

from minipaged.course.catalog import Exercise
from minipaged.course.checks.base import Check, Raises
from minipaged.course.outcome import outcome
from minipaged.course.script import Case, Operation, run

EXERCISE = Exercise("07.1", "Stack", 2, "nowhere", ("look", "think", "write"))
CASE = Case(
    "last in, first out",
    "Three go in, and come out the other way round.",
    (
        Operation((), keep="stack"),
        *(Operation((n,), "stack", "push") for n in (7, 8, 9)),
        Operation((), "stack", "pop"),
        Operation((), "stack", how="list"),
        Operation(("x",), "stack", "push"),
    ),
)
ANSWERS = [None, None, None, 9, [7, 8], Raises("TypeError")]


def the_check(cases=(CASE,), hidden=2):
    return Check(
        lambda: list(cases),
        lambda seed: [CASE] * hidden,
        lambda case: ANSWERS[: len(case.operations) - 1],
        explain=lambda failure: "Who came last goes first." if failure.number == 4 else "",
        picture=lambda case, number: f"bottom | 7 8 9 | top\nbefore operation {number}",
    )


class Stack(list):
    def push(self, item):
        if type(item) is not int:
            raise TypeError("numbers only")
        self.append(item)


class Queue(Stack):
    def pop(self):
        print("popping")
        return super().pop(0)


def told(subject, check=None, **options):
    check = check or the_check()
    return outcome(
        EXERCISE, check, [run(c.operations, subject) for c in check.visible()], **options
    )


def test_a_right_class_passes():
    came = told(Stack)
    assert came.passed and (came.num_failed, came.num_cases) == (0, 1)
    assert came.lines[-1] == "All done here: on with the next cell."
    said = told(Stack, in_notebook=False, then="`minipaged next` goes on").lines
    assert said[-1] == "All done here: `minipaged next` goes on."
    assert told(Stack, then="").lines[-1] == "All done here."
    assert any("2 more checks run at grading" in line for line in came.lines)


def test_notes_are_told_whether_it_passed_or_not():
    for subject in (Stack, Queue):
        lines = told(subject, notes=["`math` is defined elsewhere."]).lines
        assert lines.count("  note      `math` is defined elsewhere.") == 1


def test_the_first_failure_is_told_whole():
    came = told(Queue)
    assert not came.passed
    start = came.lines.index("The first failure: last in, first out")
    assert list(came.lines[start:]) == [
        "The first failure: last in, first out",
        "  story     Three go in, and come out the other way round.",
        "  so far    stack = Stack()",
        "            stack.push(7)",
        "            stack.push(8)",
        "            stack.push(9)",
        "  step 5 of 7",
        "            stack.pop()",
        "  expected  9",
        "  got       7",
        "  before    as it should be:",
        "            bottom | 7 8 9 | top",
        "            before operation 4",
        "  rule      Who came last goes first.",
        "  printed   'popping'",
        "",
        'Stuck? check("07.1", Stack, hint=1) shows the first of 3 hints.',
    ]


def test_a_missing_refusal_is_told_with_what_went_before():
    class Lenient(Stack):
        push = list.append

    lines = told(Lenient).lines
    assert "            stack.pop()  ->  9" in lines
    assert "            list(stack)  ->  [7, 8]" in lines
    assert "  expected  a TypeError" in lines
    assert any("must be refused with a TypeError, but it was accepted" in line for line in lines)


def test_a_long_script_shows_the_last_steps_only():
    many = Case(
        "many",
        "A hundred.",
        (Operation((), keep="s"), *(Operation((n,), "s", "push") for n in range(100))),
    )
    check = Check(lambda: [many], lambda s: [], lambda case: [None] * 99 + [1])
    lines = told(Stack, check).lines
    assert "  so far    … 92 steps before" in lines
    assert "            s.push(90)" not in lines and "            s.push(91)" in lines
    at = lines.index("  step 101 of 101")
    assert lines[at + 1] == "            s.push(99)"


def test_in_the_terminal_the_command_of_the_terminal_is_named():
    lines = told(Queue, in_notebook=False).lines
    assert lines[-1] == "Stuck? `minipaged hint 07.1` shows one of 3 hints."
    assert told(Queue, hint=2).lines[-1] == "hint 2 of 3: think"


@pytest.mark.parametrize("hidden", [0, 3])
def test_hidden_checks_are_announced_if_there_are_any(hidden):
    said = "\n".join(told(Stack, the_check(hidden=hidden)).lines)
    assert ("more checks run at grading" in said) == bool(hidden)


def test_the_answer_to_a_question_is_not_given_away():
    def answers():
        return {"a": 41, "b": "x"}

    cases = [
        Case(
            letter,
            "How many?",
            (Operation(keep="answers"), Operation((letter,), "answers", how="item")),
        )
        for letter in "abc"
    ]
    check = Check(lambda: cases, lambda seed: [], lambda case: [1234567], secret=True)
    lines = told(answers, check).lines
    assert "  expected  another answer" in lines
    assert "  got       41" in lines
    assert "1234567" not in " ".join(lines)
