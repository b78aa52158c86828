"""Samples of what learners write: each wrong idea fails and is told what is wrong, each right one
passes.

tests/samples/NN/<exercise>_<wrong|right>_<name>.py holds a learner's cell. A wrong one begins with
`# says: …`: words that the learner is shown.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from minipaged.course import needs
from minipaged.course.catalog import Exercise, catalog
from minipaged.course.checks.base import check_of
from minipaged.course.dev.mutate import Workers, solved_cells
from minipaged.course.outcome import outcome
from minipaged.course.sandbox import Limits, NoAnswer, limits_for
from minipaged.course.shape import shape_of
from minipaged.course.verdict import judge

ROOT = Path(__file__).parents[1]
SAMPLES = Path(__file__).with_name("samples")
SEEDS = (1, 2, 3)
LIMITS = Limits(seconds=5.0)
SAYS = "# says: "


@dataclass(frozen=True)
class Sample:
    """One file."""

    path: Path

    @property
    def parts(self) -> tuple[str, str]:
        """The exercise's id, and "wrong" or "right"."""
        found = re.fullmatch(r"(\d\d\.\d)_(wrong|right)_[a-z0-9_]+\.py", self.path.name)
        assert found, f"{self.path.name}: call it <exercise>_<wrong|right>_<name>.py"
        return found[1], found[2]

    @property
    def exercise(self) -> Exercise:
        """ValueError if it is of none."""
        exercise = catalog().exercise(self.parts[0])
        assert self.path.parent.name == exercise.lesson_id
        return exercise

    @property
    def source(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def says(self) -> str:
        """What the learner of a wrong sample must be shown."""
        first = self.source.split("\n", 1)[0]
        assert first.startswith(SAYS), f"the first line is to begin with {SAYS!r}"
        return squeezed(first.removeprefix(SAYS))


def squeezed(text: str) -> str:
    return " ".join(text.split())


FILES = [Sample(path) for path in sorted(SAMPLES.rglob("*")) if path.suffix != ".pyc"]
FILES = [sample for sample in FILES if sample.path.is_file()]
WRONG = [sample for sample in FILES if "_wrong_" in sample.path.name]
RIGHT = [sample for sample in FILES if "_right_" in sample.path.name]
EXERCISES = catalog().exercises
# answers are compared with one value each; what is wrong with others the check itself knows
WRITTEN = [exercise for exercise in EXERCISES if exercise.name != "answers"]


def name_of(one: Sample | Exercise) -> str:
    return one.path.stem if isinstance(one, Sample) else one.id


@pytest.fixture(scope="module")
def workers():
    with Workers() as all_workers:
        yield all_workers


@functools.cache
def solved(exercise: Exercise):
    """The given cells and the solution, as (id, source)."""
    return solved_cells(ROOT, exercise)


def observed(workers, exercise: Exercise, source: str, cases):
    """What a cell does, behind the given cells of its exercise; NoAnswer if it does nothing."""
    check = check_of(exercise)
    if why := needs.lacking(exercise.needs):
        pytest.skip(why)
    given = solved(exercise)[:-1]
    workers.start(check.tensors)
    with workers.borrow(check.tensors) as worker:
        cells = [*given, (exercise.solution_cell, source)]
        return worker.observe(cells, exercise.name, cases, limits_for(check, LIMITS))


def failures(workers, exercise: Exercise, source: str, cases) -> list[str]:
    """What fails, in words."""
    check = check_of(exercise)
    verdicts = judge(check, cases, observed(workers, exercise, source, cases), exercise.name)
    return [f"{verdict.case.name}: {verdict.problem}" for verdict in verdicts if verdict.problem]


def shown(workers, exercise: Exercise, source: str) -> tuple[bool, str]:
    """Whether the visible cases pass, and what the learner reads."""
    check = check_of(exercise)
    try:
        seen = observed(workers, exercise, source, check.visible())
    except NoAnswer as error:
        return False, squeezed(str(error))
    came = outcome(exercise, check, seen)
    return came.passed, squeezed(" ".join(came.lines))


@pytest.mark.parametrize("sample", FILES, ids=name_of)
def test_each_file_is_a_sample_of_an_exercise(sample):
    assert sample.exercise.id == sample.parts[0]
    ast.parse(sample.source)


@pytest.mark.parametrize("sample", WRONG, ids=name_of)
def test_a_wrong_idea_fails_where_the_learner_sees_it_and_is_told_why(workers, sample):
    passed, text = shown(workers, sample.exercise, sample.source)
    assert not passed
    assert sample.says
    assert sample.says in text


@pytest.mark.parametrize("sample", WRONG, ids=name_of)
def test_a_wrong_idea_fails_at_grading(workers, sample):
    check = check_of(sample.exercise)
    for seed in SEEDS:
        cases = check.hidden(seed) or check.visible()
        with contextlib.suppress(NoAnswer):  # no answer is no pass
            assert failures(workers, sample.exercise, sample.source, cases), f"seed {seed}"


@pytest.mark.parametrize("sample", RIGHT, ids=name_of)
def test_a_right_idea_passes(workers, sample):
    check = check_of(sample.exercise)
    hidden = [case for seed in SEEDS for case in check.hidden(seed)]
    cases = check.visible() + hidden
    assert failures(workers, sample.exercise, sample.source, cases) == []


@pytest.mark.parametrize("exercise", EXERCISES, ids=name_of)
def test_the_solution_passes(workers, exercise):
    check = check_of(exercise)
    hidden = [case for seed in SEEDS for case in check.hidden(seed)]
    source = solved(exercise)[-1][1]
    assert failures(workers, exercise, source, check.visible() + hidden) == []


@pytest.mark.parametrize("exercise", WRITTEN, ids=name_of)
def test_an_exercise_has_four_wrong_samples(exercise):
    assert len([sample for sample in WRONG if sample.parts[0] == exercise.id]) >= 4


@pytest.mark.parametrize("exercise", WRITTEN, ids=name_of)
def test_an_exercise_has_a_right_sample_that_differs_from_the_solution(exercise):
    def shape(source: str) -> str:
        return shape_of(ast.parse(source)).text

    solution = shape(solved(exercise)[-1][1])
    own = [sample for sample in RIGHT if sample.parts[0] == exercise.id]
    assert any(shape(sample.source) != solution for sample in own)
