"""Where a learner is and what to do next, on one screen."""

from __future__ import annotations

from minipaged.course.catalog import Exercise, Lesson
from minipaged.course.learner.desk import Desk
from minipaged.course.learner.progress import NAME, Progress


def where(desk: Desk) -> list[str]:
    """A line per lesson, the current exercise, and the next step."""
    state, catalog = desk.place.progress(), desk.course.catalog
    here = desk.current(state)
    done = sum(exercise.id in state.done for exercise in catalog.exercises)
    lines = [
        f"{desk.place.root}: {done} of {len(catalog.exercises)} exercises solved",
        "",
        *(_lesson(desk, state, lesson, here) for lesson in catalog.lessons),
        "",
        *next_step(desk, state),
        *_left_for_later(desk, state, here),
        *_unknown(state, here),
    ]
    missing = [n for n in desk.course.notebooks() if not (desk.place.root / n).exists()]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        lines += [
            "",
            f"Not in this workspace: {missing[0]}{more}. "
            f"`minipaged init {desk.place.root}` adds what is missing.",
        ]
    return lines


def next_step(desk: Desk, state: Progress) -> list[str]:
    """The current exercise, and exactly what to do now."""
    exercises = desk.course.catalog.exercises
    exercise = desk.current(state)
    if all(one.id in state.done for one in exercises):
        return [
            f"All {len(exercises)} exercises are solved.",
            "Next: `minipaged mine` runs the engine on your own parts.",
        ]
    if exercise.id in state.done:
        return [f"{exercise.id} {exercise.name} is solved.", "Next: `minipaged next` goes on."]
    steps = [*_reading(desk, state, exercise), _filling(desk, exercise)]
    steps.append("run `minipaged check`; `minipaged hint` helps, `minipaged next` goes on")
    points = f"{exercise.points} point{'' if exercise.points == 1 else 's'}"
    return [
        f"You are at {exercise.id} {exercise.name} ({points}). Next:",
        *(f"  {number}. {step}" for number, step in enumerate(steps, 1)),
        "`minipaged lab` opens the notebooks.",
    ]


def _left_for_later(desk: Desk, state: Progress, here: Exercise) -> list[str]:
    """The open exercises before the current one."""
    exercises = desk.course.catalog.exercises
    before = exercises[: exercises.index(here)]
    left = [exercise.id for exercise in before if exercise.id not in state.done]
    return [f"Left for later: {', '.join(left)} (`minipaged check {left[0]}`)"] if left else []


def _unknown(state: Progress, here: Exercise) -> list[str]:
    """The state can name an exercise that this course does not have."""
    if state.current in ("", here.id):
        return []
    return [f"The course has no exercise {state.current}, which {NAME} names as the current one."]


def _lesson(desk: Desk, state: Progress, lesson: Lesson, here: Exercise) -> str:
    exercises = desk.course.catalog.exercises_of(lesson.id)
    solved = [exercise.id in state.done for exercise in exercises]
    bar = "[" + "".join("#" if one else "." for one in solved) + "]"
    width = max(len(one.title) for one in desk.course.catalog.lessons)
    mark = "  <- you are here" if lesson.id == here.lesson_id else ""
    count = f"{sum(solved)} of {len(solved)}"
    return f"  {lesson.id}  {lesson.title:{width}}  {lesson.minutes:3} min  {bar:6} {count}{mark}"


def _reading(desk: Desk, state: Progress, exercise: Exercise) -> list[str]:
    """The lesson stands before its first exercises, until one of them is solved."""
    siblings = desk.course.catalog.exercises_of(exercise.lesson_id)
    if any(one.id in state.done for one in siblings):
        return []
    lesson = desk.course.catalog.lesson(exercise.lesson_id)
    return [f"read lessons/{lesson.stem}.ipynb (with its exercises {lesson.minutes} minutes)"]


def _filling(desk: Desk, exercise: Exercise) -> str:
    path = desk.course.notebook_of(exercise)
    return f"in {path} fill in {exercise.name}, the cell under {exercise.id}, and save"
