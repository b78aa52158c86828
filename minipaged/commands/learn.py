"""The commands of a learner and of a teacher: the loop through the exercises, and grading."""

from __future__ import annotations

import contextlib
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from minipaged.course.grade import Tell

ExerciseId = Annotated[
    str | None, typer.Argument(metavar="[ID]", help="Such as 02.1; without it, the current one.")
]
HOW_TO_BEGIN = "To begin the course, lay out a workspace: minipaged init DIR"


def add_to(app: typer.Typer) -> None:
    """Put these commands beside the others."""
    app.command(epilog="Example: minipaged init my-course")(init)
    app.command(epilog="Example: minipaged check 00.1")(check)
    app.command(epilog="Example: minipaged hint 00.1 --level 1")(hint)
    app.command(epilog="Example: minipaged solution 00.1")(solution)
    app.command("next", epilog="Example: minipaged next --skip")(next_exercise)
    app.command(epilog="Example: minipaged reset 00.1")(reset)
    app.command(epilog="Example: minipaged mine --without 02.1")(mine)
    app.command(epilog="Example: minipaged lab")(lab)
    app.command(epilog="Example: minipaged grade exercises/00_tour.ipynb")(grade)


def where_or_help(context: typer.Context) -> None:
    """What no command does: the place in the course, or, outside a workspace, the help."""
    from minipaged.course.learner.desk import sit_down
    from minipaged.course.learner.loop_show import where
    from minipaged.course.learner.workspace import NoWorkspace, find

    try:
        in_workspace = find().keeps_progress
    except NoWorkspace:
        in_workspace = False
    if in_workspace:
        _say(where(sit_down()))
    else:
        _say([context.get_help(), "", HOW_TO_BEGIN])


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder, or a workspace.")],
) -> None:
    """Lay out a workspace: lessons, exercises, progress.

    Run again on a workspace it adds what is new and refreshes what you have not changed.
    """
    from minipaged.course import shipped
    from minipaged.course.learner import workspace

    _say(workspace.init(folder, shipped.course()))
    _say(["", f"The workspace is {folder.resolve()}. Go there and run: minipaged"])


def check(
    exercise_id: ExerciseId = None,
    gpu: Annotated[
        bool, typer.Option("--gpu", help="A kernel: compiled, on the GPU. Nothing is recorded.")
    ] = False,
) -> int:
    """Check your cell of an exercise.

    It is taken from the saved notebook and run in a process of its own. The exit code is 0 if it
    passed, 1 if not.
    """
    from minipaged.course.learner import loop
    from minipaged.course.learner.desk import sit_down

    desk = sit_down()
    exercise = desk.exercise(exercise_id)
    checked = loop.check_on_gpu(desk, exercise) if gpu else loop.check(desk, exercise)
    _say(checked.lines)
    return 0 if checked.passed else 1


def hint(
    exercise_id: ExerciseId = None,
    level: Annotated[int | None, typer.Option(help="Show this one (1, 2 or 3) again.")] = None,
) -> None:
    """Show the next of an exercise's three hints.

    After them its solution is open.
    """
    from minipaged.course.learner import loop
    from minipaged.course.learner.desk import sit_down

    desk = sit_down()
    _say(loop.hint(desk, desk.exercise(exercise_id), level))


def solution(
    exercise_id: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]",
            help="Such as 02.1, or a lesson such as 02; without it, the current exercise.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Also before all hints.")] = False,
) -> None:
    """Show the solution of an exercise.

    It is open after the exercise's hints, or when you have solved it. With the id of a lesson: the
    model answer of its open question, at any time.
    """
    from rich.console import Console

    from minipaged.course import shipped
    from minipaged.course.learner import loop
    from minipaged.course.learner.desk import sit_down

    course = shipped.course()
    for lesson in course.catalog.lessons:
        if lesson.id == exercise_id:
            show_text(loop.answers(course, lesson), Console())
            return
    desk = sit_down()
    show_code(loop.solution(desk, desk.exercise(exercise_id), force), Console())


def next_exercise(
    skip: Annotated[bool, typer.Option("--skip", help="Leave the current one for later.")] = False,
) -> int:
    """Check the current exercise, then go on.

    If it does not pass you stay at it, unless you skip it.
    """
    from minipaged.course.learner import loop
    from minipaged.course.learner.desk import sit_down

    went = loop.go_on(sit_down(), skip)
    _say(went.lines)
    return 0 if went.passed else 1


def reset(
    exercise_id: ExerciseId = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every exercise notebook, and the progress.")
    ] = False,
) -> None:
    """Put an exercise back as it was handed out.

    Only its cell is changed, and the old file is kept in backups/.
    """
    from minipaged.course.learner import reset as back
    from minipaged.course.learner.desk import sit_down

    if everything and exercise_id is not None:
        raise ValueError(f"reset was given {exercise_id} and --all: give one of them")
    desk = sit_down()
    _say(back.reset_all(desk) if everything else back.reset(desk, desk.exercise(exercise_id)))


def mine(
    without: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Use the reference for this one.")
    ] = None,
) -> int:
    """Run the engine on your own parts.

    It runs over the ledger first, then with the tutor; where two of your parts fill one place (two
    schedulers, two prefix caches), with each in turn. The exit code is 1 if a part of yours fails
    there; it is named.
    """
    from minipaged.course.learner import mine_run
    from minipaged.course.learner.blame import PartFailure
    from minipaged.course.learner.desk import sit_down
    from minipaged.course.learner.turns import turns
    from minipaged.course.mine import OwnPartError

    try:
        desk = sit_down()
        parts = mine_run.choose(desk, without or ())
        _say(mine_run.report(desk, parts, without or ()))
        if not any(part.is_own for part in parts):
            return 0
        for number, (said, some) in enumerate(turns(desk, parts, without or ())):
            if said:
                _say(["", said] if number else [said])
            _say(mine_run.over_the_ledger(some))
            _say(mine_run.over_the_tutor(some))
    except (OwnPartError, PartFailure) as error:
        _say([f"FAILED  {error}" if isinstance(error, OwnPartError) else str(error)])
        return 1
    return 0


def lab() -> int:
    """Open JupyterLab in the workspace."""
    from minipaged.course.learner.workspace import find

    root = find().root
    if importlib.util.find_spec("jupyterlab") is None:
        raise ValueError("JupyterLab is not installed: pip install 'minipaged[notebooks]'")
    return subprocess.call([sys.executable, "-m", "jupyterlab", str(root)])


def grade(
    paths: Annotated[list[Path], typer.Argument(help="Notebooks, or folders of them.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    seed: Annotated[
        int | None, typer.Option(help="Of the hidden checks; drawn if left out.")
    ] = None,
    no_copies: Annotated[
        bool, typer.Option("--no-copies", help="No points for the reference or the solution.")
    ] = False,
    seconds: Annotated[
        float | None,
        typer.Option(metavar="N", help="For an exercise without tensors, instead of 10."),
    ] = None,
) -> int:
    """Give points for exercise notebooks.

    The exit code is 0 if every exercise passed, 1 if not. Ctrl-C shows what is graded so far; the
    exit code is 130 then.
    """
    from rich.console import Console

    from minipaged.course import grade as grading
    from minipaged.course.report import render, to_json

    stopped = None
    try:
        with telling_of(Console(stderr=True)) as tell:
            reports = grading.grade(paths, seed, seconds=seconds, no_copies=no_copies, tell=tell)
    except grading.GradingStopped as error:
        reports, stopped = error.reports, error
    if as_json:
        print(to_json(reports))
    else:
        render(reports, Console())
    if stopped is not None:
        through = f"{len(reports)} of {stopped.total} notebooks are graded"
        print(f"minipaged: stopped: {through}", file=sys.stderr)
        return 130
    return grading.exit_code(reports)


@contextlib.contextmanager
def telling_of(console: Console) -> Iterator[Tell | None]:
    """Something to call after each notebook, which shows how far it is; None where nobody looks."""
    if not console.is_terminal:
        yield None
        return
    from minipaged.commands.telling import telling

    with telling(console) as report:
        yield lambda graded, number, total: report(Path(graded.path).name, number + 1, total)


def show_code(code: str, console: Console) -> None:
    """Python code: in colours in a terminal, else as it is."""
    if not console.is_terminal:
        print(code)
        return
    from rich.syntax import Syntax

    console.print(Syntax(code, "python", background_color="default"))


def show_text(text: str, console: Console) -> None:
    """A text in Markdown: laid out in a terminal, else as it is."""
    if not console.is_terminal:
        print(text)
        return
    from rich.markdown import Markdown

    console.print(Markdown(text))


def _say(lines: list[str] | tuple[str, ...]) -> None:
    print("\n".join(lines), flush=True)
