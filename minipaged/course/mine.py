"""mine("02.1"): the learner's own earlier work, for use in a notebook; else the reference.

    FreeQueue = mine("02.1")        prints  02.1 FreeQueue: yours (exercises/02_block_pool.ipynb)

Only the learner's cell is run, behind the given cells of the release, in a module of its own; the
notebook that it stands in is not run. Unlike a check this happens in this very process.
"""

from __future__ import annotations

import ast
import linecache
import sys
import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from minipaged.components import Components
from minipaged.course import needs, script, shipped, submission
from minipaged.course.catalog import Exercise
from minipaged.course.faults import say_fault
from minipaged.course.learner.desk import Desk
from minipaged.course.learner.workspace import NoWorkspace, find
from minipaged.course.shipped import Course
from minipaged.course.submission import SubmissionError


class OwnPartError(ValueError):
    """The learner's cell is there but cannot be used; the message says why, with their line."""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows instead of a traceback, which would lead through our code."""
        return [f"OwnPartError: {self}"]


@dataclass(frozen=True, slots=True)
class Part:
    """What an exercise asks for. value: the function or class. is_own: the learner's, not the
    reference. where: the notebook that it is from, "" for the reference. passes: an own part whose
    check is known to pass."""

    exercise: Exercise
    value: Any
    is_own: bool = False
    where: str = ""
    passes: bool = False

    def __str__(self) -> str:
        owner = f"yours ({self.where})" if self.is_own else "the reference"
        return f"{self.exercise.id} {self.exercise.name}: {owner}"


def mine(exercise_id: str) -> Any:
    """The learner's own class or function for an exercise; prints a line that says whose it is.

    The workspace is looked for from the current folder upwards. Without one, or while the cell is
    unsolved, it is the reference: the engine's own part, else the solution. A cell is unsolved
    while it is as it was handed out, and while it still raises NotImplementedError somewhere and
    `minipaged check` has not seen it pass.
    OwnPartError if the cell cannot be run; ValueError for an unknown exercise; NeedsTriton for a
    kernel where Triton is missing.
    """
    course = shipped.course()
    exercise = course.catalog.exercise(exercise_id)
    try:
        part = load(Desk(find(), course), exercise)
    except NoWorkspace:
        part = reference(course, exercise)
    print(part)
    return part.value


def load(desk: Desk, exercise: Exercise, *, passes: bool = False) -> Part:
    """The part from the learner's notebook, or the reference while the cell is unsolved.

    passes: the cell is known to pass its check, whatever the progress says.
    """
    where = desk.course.notebook_of(exercise)
    try:
        source = desk.source(exercise)
        passes = passes or exercise.id in desk.place.progress().done
        if source == desk.course.stub(exercise) or (not passes and _has_gap(source)):
            return reference(desk.course, exercise)
        cells = [*desk.course.given(exercise), (exercise.solution_cell, source)]
        value = _run([(f"<cell {name}>", text) for name, text in cells], exercise)
    except (SubmissionError, _Unusable) as error:
        raise OwnPartError(f"{exercise.id} {exercise.name} ({where}): {error}") from None
    return Part(exercise, value, is_own=True, where=where, passes=passes)


def reference(course: Course, exercise: Exercise) -> Part:
    """The engine's own part that the exercise stands for, else the packaged solution."""
    value = getattr(Components(), exercise.component) if exercise.component else None
    if value is None:
        cells = [*course.given(exercise), (exercise.solution_cell, course.solution(exercise))]
        value = _run([(f"<reference {name}>", text) for name, text in cells], exercise)
    return Part(exercise, value)


class _Unusable(Exception):
    """Why a cell gives no part."""


def _has_gap(source: str) -> bool:
    """The cell holds what was handed out in place of a solution, in whichever method."""
    for node in ast.walk(submission.parse(source)):
        if isinstance(node, ast.Raise):
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if isinstance(raised, ast.Name) and raised.id == "NotImplementedError":
                return True
    return False


def _run(cells: Sequence[tuple[str, str]], exercise: Exercise) -> Any:
    """Run cells (file name, source) in a new module and take what they define."""
    if why := needs.lacking(exercise.needs):
        raise needs.NeedsTriton(why)
    needs.interpret(source for _, source in cells)
    module = types.ModuleType("own_" + exercise.id.replace(".", "_"))
    sys.modules[module.__name__] = module  # dataclasses look their module up there
    for filename, source in cells:
        lines = source.splitlines(keepends=True)
        linecache.cache[filename] = (len(source), None, lines, filename)
        try:
            exec(compile(source, filename, "exec", dont_inherit=True), module.__dict__)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise _Unusable(say_fault(script.describe(error, __file__))) from error
    value = getattr(module, exercise.name, None)
    if value is None:
        raise _Unusable(f"The cell defines no {exercise.name}.")
    if script.is_ours(value):
        raise _Unusable(f"{exercise.name} is minipaged's own, not yours: define it yourself.")
    return value
