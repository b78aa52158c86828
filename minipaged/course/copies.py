"""Recognising copies: a cell that is the reference, or the packaged solution, but for its names.

Two pieces of code count as equal if they have the same shape (shape.py): the same syntax tree, but
for comments, annotations and the names that the code makes up. A short function can come out equal
honestly, so a tree of fewer than MIN_NODES nodes is never called a copy. Nothing is executed.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from minipaged.course import submission
from minipaged.course.catalog import Exercise
from minipaged.course.shape import Shape, shape_of

# blocks_needed has 30 nodes, a function of eight full lines about 100
MIN_NODES = 100
_MAX_CHARACTERS = 50_000


def copied_from(source: str, exercise: Exercise, solutions: Path, stem: str) -> str:
    """What a learner's cell is a copy of, in words; "" if it is none.

    source: the cell, which is Python. solutions: the folder of the solved notebooks; what is not
    there is not compared with. stem: of the lesson's files. Cost: milliseconds.
    """
    if len(source) > _MAX_CHARACTERS:
        return ""
    try:
        own = set(_shapes(source, exercise.name))
    except RecursionError:  # nothing of ours is nested so deeply
        return ""
    for said, name, original in _originals(exercise, solutions / f"{stem}.ipynb"):
        if own & set(_shapes(original, name)):
            return said
    return ""


def _shapes(source: str, name: str) -> Iterator[Shape]:
    """Of a whole cell, and of the definition of `name` in it, each if it is large enough."""
    tree = submission.parse(source)
    defined = [node for node in tree.body if getattr(node, "name", "") == name]
    for part in (tree, *defined):
        one = shape_of(part)
        if one.num_nodes >= MIN_NODES:
            yield one


def _originals(exercise: Exercise, solved: Path) -> Iterator[tuple[str, str, str]]:
    """Each original: in words, the name that it defines, and its source."""
    default = _default(exercise.component) if exercise.component is not None else None
    if default is not None:
        said = f"{default.__module__}.{default.__qualname__}"
        yield said, default.__name__, inspect.getsource(default)
    for source in _solutions(solved, exercise.solution_cell):
        yield "the packaged solution", exercise.name, source


def _default(component: str) -> Any:
    """The class or function that fills a component if nobody else does, or None."""
    from minipaged.components import Components

    return next(f.default for f in dataclasses.fields(Components) if f.name == component)


@functools.cache
def _solutions(solved: Path, grade_id: str) -> tuple[str, ...]:
    try:
        sources = submission.read(solved).sources(grade_id)
    except submission.SubmissionError:
        return ()
    return tuple(source for source in sources if _is_python(source))


def _is_python(source: str) -> bool:
    try:
        submission.parse(source)
    except SyntaxError:
        return False
    return True
