"""The learner's loop: check, hint, solution, next. Each says what to print; loads no torch."""

from __future__ import annotations

from dataclasses import dataclass

from minipaged.course import selfcontained
from minipaged.course.catalog import NUM_HINTS, Exercise, Lesson
from minipaged.course.checks.base import check_of
from minipaged.course.learner.desk import NO_PROGRESS, Desk
from minipaged.course.learner.loop_show import next_step
from minipaged.course.learner.progress import Progress
from minipaged.course.outcome import outcome, wrap
from minipaged.course.sandbox import NoAnswer, limits_for, observe
from minipaged.course.shipped import Course
from minipaged.course.submission import SubmissionError

UNTOUCHED = (
    "The cell is still as it was handed out. If you have filled it in, save the notebook (Ctrl+S), "
    "then check again."
)


@dataclass(frozen=True, slots=True)
class Checked:
    """lines: to print. summary: the same in a few words, if the exercise passed."""

    lines: tuple[str, ...]
    passed: bool
    summary: str = ""


def check(desk: Desk, exercise: Exercise) -> Checked:
    """Run the visible cases on the learner's cell in a process of its own, and record the verdict.

    Whatever is wrong with notebook or cell is in the lines. Cost: a process start, about 0.1 s;
    with tensors some 2 s; at most the limits of the sandbox.
    """
    checked = _checked(desk, exercise)
    if checked.passed:
        desk.record(lambda state: state.done.add(exercise.id))
    else:
        desk.record(lambda state: state.done.discard(exercise.id))
    if not desk.place.keeps_progress:
        return Checked((*checked.lines, NO_PROGRESS), checked.passed, checked.summary)
    return checked


def check_on_gpu(desk: Desk, exercise: Exercise, device: str = "cuda") -> Checked:
    """The learner's kernel once more, compiled and on a GPU; nothing is recorded.

    ValueError if there is no GPU, or if the exercise writes no kernel. Cost: a minute.
    """
    from minipaged.course.native import check_natively

    try:
        source = desk.source(exercise)
    except SubmissionError as error:
        where = f"{desk.course.notebook_of(exercise)}, {exercise.id} {exercise.name}"
        return Checked((f"{where}: {error}",), passed=False)
    cells = [*desk.course.given(exercise), (exercise.solution_cell, source)]
    lines, passed = check_natively(exercise, cells, device)
    return Checked(tuple(lines), passed)


def _checked(desk: Desk, exercise: Exercise) -> Checked:
    where = f"{desk.course.notebook_of(exercise)}, {exercise.id} {exercise.name}"
    try:
        source = desk.source(exercise)
        the_check = check_of(exercise)
        cells = [*desk.course.given(exercise), (exercise.solution_cell, source)]
        cases = the_check.visible()
        notes = _notes(desk, exercise, source, the_check.tensors)
        seen = observe(cells, exercise.name, cases, limits_for(the_check))
    except SubmissionError as error:
        return Checked((f"{where}: {error}",), passed=False)
    except NoAnswer as error:
        return Checked((f"{where}: {error}", *notes), passed=False)
    then = _then(desk, exercise)
    came = outcome(exercise, the_check, seen, in_notebook=False, notes=notes, then=then)
    lines = came.lines
    if not came.passed and source == desk.course.stub(exercise):
        lines += tuple(wrap("", UNTOUCHED))
    summary = f"{exercise.id} {exercise.name}: {came.num_cases} of {came.num_cases} passed."
    return Checked(lines, came.passed, summary if came.passed else "")


def _notes(desk: Desk, exercise: Exercise, source: str, tensors: bool) -> list[str]:
    """What the cell takes from other cells of the notebook, and what is refused in it."""
    cells = desk.read(exercise).cells
    others = [c for c in cells if c.kind == "code" and c.grade_id != exercise.solution_cell]
    elsewhere = set().union(*(selfcontained.defined(cell.source) for cell in others))
    given = [text for _, text in desk.course.given(exercise)]
    return selfcontained.notes(source, tensors=tensors, given=given, elsewhere=elsewhere)


def _then(desk: Desk, exercise: Exercise) -> str:
    """What comes after an exercise that has passed: it need not be the current one."""
    if not desk.place.keeps_progress:
        return ""
    current = desk.current(desk.place.progress())
    if current.id == exercise.id:
        return "`minipaged next` goes on"
    return f"you are at {current.id} {current.name}, `minipaged` shows what to do there"


def hint(desk: Desk, exercise: Exercise, level: int | None) -> list[str]:
    """The next hint, or, with a level, one again. What was shown is remembered.

    ValueError for a level that was not shown yet.
    """
    seen = desk.place.progress().hints.get(exercise.id, 0)
    if level is not None:
        _require_seen(desk, exercise, level, seen)
        return _hint(exercise, level)
    if seen == NUM_HINTS:
        return [
            f"All {NUM_HINTS} hints of {exercise.id} have been shown: "
            f"`minipaged hint {exercise.id} --level 1` shows one again.",
            _solution_is_open(exercise),
        ]
    desk.record(lambda state: state.hints.update({exercise.id: seen + 1}))
    lines = _hint(exercise, seen + 1)
    if not desk.place.keeps_progress:
        return [*lines, "", "--level 2 shows the next. " + NO_PROGRESS]
    return [*lines, "", _solution_is_open(exercise)] if seen + 1 == NUM_HINTS else lines


def _hint(exercise: Exercise, level: int) -> list[str]:
    return wrap(f"hint {level} of {NUM_HINTS}: ", exercise.hints[level - 1])


def _solution_is_open(exercise: Exercise) -> str:
    return f"`minipaged solution {exercise.id}` is open now."


def _require_seen(desk: Desk, exercise: Exercise, level: int, seen: int) -> None:
    most = seen if desk.place.keeps_progress else NUM_HINTS
    if not 1 <= level <= most:
        raise ValueError(
            f"--level is {level}, but of {exercise.id} {most} of {NUM_HINTS} hints have been "
            f"shown: `minipaged hint {exercise.id}` shows the next"
        )


def solution(desk: Desk, exercise: Exercise, force: bool) -> str:
    """The solution's code; ValueError unless it is open: after all hints, solved, or forced."""
    state = desk.place.progress()
    seen = state.hints.get(exercise.id, 0)
    if not force and seen < NUM_HINTS and exercise.id not in state.done:
        raise ValueError(
            f"the solution of {exercise.id} opens when the exercise is solved, or after its hints "
            f"({seen} of {NUM_HINTS} shown; `minipaged hint {exercise.id}`); --force shows it now"
        )
    return desk.course.solution(exercise).rstrip()


def answers(course: Course, lesson: Lesson) -> str:
    """The model answer of a lesson's open question; ValueError if it has none."""
    found = [answer.strip() for answer in course.model_answers(lesson)]
    if not found:
        raise ValueError(
            f"lesson {lesson.id} has no open question; `minipaged solution {lesson.id}.1` shows "
            "the solution of an exercise"
        )
    return "\n\n---\n\n".join(found)


def go_on(desk: Desk, skip: bool) -> Checked:
    """To the next exercise, if the current one passes or is to be skipped."""
    desk.require_progress("next")
    exercise = desk.exercise(None)
    if skip:
        before = [f"{exercise.id} {exercise.name} is left for later."]
    else:
        checked = check(desk, exercise)
        if not checked.passed:
            stays = (
                f"{exercise.id} is not solved yet, so you stay at it. "
                "`minipaged next --skip` leaves it for later."
            )
            return Checked((*checked.lines, "", stays), passed=False)
        before = [checked.summary]
    state = desk.place.progress()
    following = _following(desk, exercise, state)
    if following is None:
        return Checked((*before, _nothing_left(exercise, state)), passed=True)
    desk.record(lambda now: setattr(now, "current", following.id))
    return Checked((*before, "", *next_step(desk, desk.place.progress())), passed=True)


def _following(desk: Desk, exercise: Exercise, state: Progress) -> Exercise | None:
    """The next open exercise behind this one, else the first open one before it."""
    exercises = desk.course.catalog.exercises
    here = exercises.index(exercise)
    in_turn = (*exercises[here + 1 :], *exercises[:here])
    return next((e for e in in_turn if e.id not in state.done), None)


def _nothing_left(exercise: Exercise, state: Progress) -> str:
    if exercise.id not in state.done:
        return f"Nothing comes behind it: only {exercise.id} is left."
    return "This is the end of the course so far: all exercises are solved."
