"""`minipaged dev mutate`: does the check of an exercise notice small mistakes in its solution?

Each mutant of the solution (mutants.py) runs the visible cases and hidden ones from a seed, in a
warm worker. It is killed if a case fails or there is no answer. One that does not end in time is
counted apart: mostly it loops forever, but a machine that stands still looks the same. What
survives shows a hole in the check, or is explained (survivors.py).
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import queue
import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minipaged.course.catalog import Catalog, Exercise, catalog
from minipaged.course.checks.base import Check, Close, Raises, check_of
from minipaged.course.dev.mutants import Mutant, mutants
from minipaged.course.dev.notebook import solved_notebook
from minipaged.course.dev.survivors import Explanation, Result, explanations, render, sort_out
from minipaged.course.dev.warm import WarmWorker
from minipaged.course.sandbox import TIME_OVER, Limits, NoAnswer, limits_for
from minipaged.course.script import Case
from minipaged.course.verdict import judge

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

MAX_WORKERS = 2
_FINE = 1e-4  # a tolerance above it lets answers come near

Cells = list[tuple[str, str]]


class Workers:
    """Warm workers of both kinds, at most MAX_WORKERS of each, started when first needed."""

    def __init__(self) -> None:
        self.count = max(1, min(MAX_WORKERS, os.cpu_count() or 1))
        self._stack = contextlib.ExitStack()
        self._idle: dict[bool, queue.SimpleQueue[WarmWorker]] = {}

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def start(self, tensors: bool) -> None:
        """Have the workers of a kind ready; call it before threads borrow them."""
        if tensors not in self._idle:
            self._idle[tensors] = queue.SimpleQueue()
            for _ in range(self.count):
                self._idle[tensors].put(self._stack.enter_context(WarmWorker(tensors)))

    @contextlib.contextmanager
    def borrow(self, tensors: bool) -> Iterator[WarmWorker]:
        """One of them, for as long as the block takes; waits until one is idle."""
        worker = self._idle[tensors].get()
        try:
            yield worker
        finally:
            self._idle[tensors].put(worker)


def chosen(ids: Sequence[str], course: Catalog | None = None) -> list[Exercise]:
    """The exercises with these ids, or of the lessons with these ids; all if there are none.

    ValueError names an id that is neither.
    """
    course = course or catalog()
    if not ids:
        return list(course.exercises)
    found: list[Exercise] = []
    for one in ids:
        whole = course.exercises_of(one)
        found += whole or [course.exercise(one)]
    return list(dict.fromkeys(found))


def solved_cells(root: Path, exercise: Exercise, course: Catalog | None = None) -> Cells:
    """The given cells above an exercise's cell and then that cell, solved, as (id, source).

    root: the repository. BuildError if the source of the lesson cannot be built.
    """
    course = course or catalog()
    lesson = course.lesson(exercise.lesson_id)
    cells: Cells = []
    for cell in solved_notebook(root / "solutions" / f"{lesson.stem}.py", lesson, course).cells:
        if cell.id == exercise.solution_cell:
            return [*cells, (cell.id, cell.source)]
        if cell.cell_type == "code" and "-given-" in cell.id:
            cells.append((cell.id, cell.source))
    raise ValueError(f"the source of lesson {lesson.id} has no cell {exercise.solution_cell}")


def mutate(
    exercise: Exercise,
    cells: Cells,
    workers: Workers,
    *,
    check: Check | None = None,
    known: Sequence[Explanation] = (),
    seed: int = 0,
    limit: int | None = None,
    advance: Callable[[int, int], None] = lambda done, of: None,
) -> Result:
    """Try the mutants of the last cell (the solution) on the exercise's check.

    check: instead of its own. seed: of the hidden cases, and of the choice if `limit` mutants are
    to be enough. advance: told how many are done. ValueError if the solution itself does not pass.
    Cost: a few milliseconds a mutant; for one that loops forever a second or more.
    """
    trial = _Trial(exercise, cells, check or check_of(exercise), workers, seed)
    trial.require_solution()
    made = mutants(cells[-1][1], trial.demanded(), trial.is_coarse())
    tried = made
    if limit is not None and limit < len(made):
        tried = sorted(random.Random(seed).sample(made, limit), key=lambda mutant: mutant.line)
    survivors, timed_out = [], 0
    threads = ThreadPoolExecutor(workers.count)
    try:
        fates = threads.map(trial.fate, tried)
        for done, (mutant, fate) in enumerate(zip(tried, fates, strict=True), 1):
            survivors += [mutant] if fate == "survives" else []
            timed_out += fate == "timed out"
            advance(done, len(tried))
    finally:
        threads.shutdown(cancel_futures=True)
    result = sort_out(exercise, len(made), len(tried), survivors, known)
    return dataclasses.replace(result, timed_out=timed_out)


def run(
    root: Path, ids: Sequence[str], console: Console, *, seed: int = 0, limit: int | None = None
) -> int:
    """Mutate the exercises with these ids (see `chosen`), print what came of it.

    root: the repository. Returns the exit code: 1 if a survivor is not explained, else 0.
    """
    from rich.progress import Progress

    known, holes = explanations(), 0
    # a bar in a terminal, nothing in a pipe
    bar = Progress(console=console, transient=True, disable=not console.is_terminal)
    with Workers() as workers, bar:
        for exercise in chosen(ids):
            task = bar.add_task(f"{exercise.id} {exercise.name}", total=None)
            result = mutate(
                exercise,
                solved_cells(root, exercise),
                workers,
                known=known,
                seed=seed,
                limit=limit,
                advance=functools.partial(_advance, bar, task),
            )
            bar.remove_task(task)
            render(result, console)
            holes += len(result.unexplained)
    return 1 if holes else 0


def _advance(bar: Progress, task: TaskID, done: int, of: int) -> None:
    bar.update(task, completed=done, total=of)


class _Trial:
    """One exercise's cases and what is expected of them, worked out once."""

    def __init__(
        self, exercise: Exercise, cells: Cells, check: Check, workers: Workers, seed: int
    ) -> None:
        self.exercise = exercise
        self.given, self.solution = cells[:-1], cells[-1]
        # most mutants fail a visible case already, and then no hidden one is run
        self.stages: list[list[Case]] = [check.visible(), check.hidden(seed)]
        cases = [case for stage in self.stages for case in stage]
        self.expected = {id(case): check.oracle(case) for case in cases}
        self.check = dataclasses.replace(
            check, oracle=lambda case: self.expected[id(case)], explain=lambda failure: ""
        )
        self.workers = workers
        self.limits = limits_for(check, Limits(seconds=30.0))
        workers.start(check.tensors)

    def demanded(self) -> set[str]:
        """The exceptions that the oracle asks for."""
        return {value.kind for value in self._values() if type(value) is Raises}

    def is_coarse(self) -> bool:
        """Whether the oracle accepts more than what rounding does to a number."""
        close = [value for value in self._values() if type(value) is Close]
        return any(value.relative > _FINE or value.absolute > _FINE for value in close)

    def _values(self) -> list[Any]:
        return [value for row in self.expected.values() for value in row]

    def require_solution(self) -> None:
        """ValueError unless the solution passes; its time sets the limit of the mutants."""
        began = time.monotonic()
        failed = self._first_failure(self.solution[1])
        if failed:
            raise ValueError(
                f"the solution of {self.exercise.id} does not pass its own check ({failed}): mend "
                "the one or the other first"
            )
        seconds = max(1.0, 10 * (time.monotonic() - began))
        self.limits = dataclasses.replace(self.limits, seconds=seconds)

    def fate(self, mutant: Mutant) -> str:
        """What the check makes of a mutant: "killed", "timed out" or "survives"."""
        failure = self._first_failure(mutant.source)
        if failure.startswith(TIME_OVER):
            return "timed out"
        return "killed" if failure else "survives"

    def _first_failure(self, source: str) -> str:
        """The name of the first case that fails, or why there is no answer; "" if all pass."""
        stages = (self._failure_of(source, cases) for cases in self.stages if cases)
        return next(filter(None, stages), "")

    def _failure_of(self, source: str, cases: list[Case]) -> str:
        name, cells = self.exercise.name, [*self.given, (self.solution[0], source)]
        try:
            with self.workers.borrow(self.check.tensors) as worker:
                seen = worker.observe(cells, name, cases, self.limits)
        except NoAnswer as error:
            return f"{error.status}: {error}"
        verdicts = judge(self.check, cases, seen, name)
        return next((verdict.case.name for verdict in verdicts if not verdict.passed), "")
