"""Skeletons and solutions run beside their checks: the one must fail, the other pass."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any, Self

from minipaged.course.catalog import Exercise
from minipaged.course.checks.base import Check
from minipaged.course.dev.lint_leaks import Secret
from minipaged.course.dev.warm import WarmWorker
from minipaged.course.sandbox import NoAnswer
from minipaged.course.script import Case
from minipaged.course.verdict import Verdict, judge

Cells = Sequence[tuple[str, str]]


class Runner:
    """Runs cells in warm workers, one with torch and one without, each started when needed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._workers: dict[bool, WarmWorker] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def solution_faults(self, exercise: Exercise, check: Check, cells: Cells) -> Iterator[str]:
        """A solution that fails a visible case, or a hidden one of the seed."""
        visible = check.visible()
        try:
            verdicts = self._judge(exercise, check, cells, visible + check.hidden(self.seed))
        except NoAnswer as error:
            yield f"does not pass its check ({error}): mend the solution or the check"
            return
        for number, verdict in enumerate(verdicts):
            if not verdict.passed:
                yield _say_failure(verdict, number < len(visible), self.seed)
                return

    def skeleton_faults(self, exercise: Exercise, check: Check, cells: Cells) -> Iterator[str]:
        """A skeleton that passes what the learner sees of its check."""
        with contextlib.suppress(NoAnswer):
            if all(v.passed for v in self._judge(exercise, check, cells, check.visible())):
                yield (
                    "passes its check unsolved: let the solution's markers enclose what makes it "
                    "pass, or give the check cases that fail"
                )

    def _judge(
        self, exercise: Exercise, check: Check, cells: Cells, cases: Sequence[Case]
    ) -> list[Verdict]:
        if check.tensors not in self._workers:
            worker = WarmWorker(check.tensors)
            self._workers[check.tensors] = self._stack.enter_context(worker)
        seen = self._workers[check.tensors].observe(cells, exercise.name, cases)
        return judge(check, cases, seen, exercise.name)


def _say_failure(verdict: Verdict, is_visible: bool, seed: int) -> str:
    problem = verdict.problem
    assert problem is not None
    kind = "visible" if is_visible else "hidden"
    which = f"{kind} case {verdict.case.name!r}" + ("" if is_visible else f" of seed {seed}")
    said = f"{problem.call} gives {problem.got}, expected {problem.expected}"
    return f"does not pass its check ({which}: {said}): mend the solution or the check"


def hidden_secrets(exercise: Exercise, check: Check, seed: int) -> Iterator[Secret]:
    """What an exercise notebook must not show of the hidden cases: their stories, and the code
    that makes them."""
    hidden = check.hidden(seed)
    if not hidden:
        return
    name = f"the hidden checks of {exercise.id}"
    stories = {case.story for case in hidden} - {case.story for case in check.visible()}
    yield Secret(name, (), tuple(sorted(stories)))
    for function in _makers(check.hidden):
        with contextlib.suppress(TypeError, OSError):  # not written in a file
            lines = (line.strip() for line in inspect.getsource(function).splitlines())
            yield Secret(name, tuple(line for line in lines if line), ())


def _makers(function: Callable[..., Any]) -> list[FunctionType]:
    """A function and those of its module that it calls, directly or through others."""
    found: list[FunctionType] = []
    todo: list[Callable[..., Any]] = [function]
    while todo:
        one = todo.pop()
        if isinstance(one, FunctionType) and one not in found:
            found.append(one)
            named = (one.__globals__.get(name) for name in one.__code__.co_names)
            todo += [
                f for f in named if isinstance(f, FunctionType) and f.__module__ == one.__module__
            ]
    return found
