"""`minipaged dev …`: for those who write the course. It stands in a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="For those who write the course.")


@app.command("build", epilog="Example: minipaged dev build")
def dev_build(
    lessons: Annotated[
        list[str] | None, typer.Argument(help="Ids such as 02; without any, all lessons.")
    ] = None,
    force: Annotated[bool, typer.Option(help="Also what is in step with its source.")] = False,
) -> None:
    """Build the notebooks that are out of step with their sources."""
    from rich.console import Console

    from minipaged.commands.telling import telling
    from minipaged.course.dev.build import build, find_root

    with telling(Console()) as report:
        written = build(find_root(Path.cwd()), force=force, lessons=lessons or (), report=report)
    print(f"{len(written)} notebook{'' if len(written) == 1 else 's'} built")


@app.command("check", epilog="Example: minipaged dev check")
def dev_check() -> int:
    """Say what is wrong with the course, a line each; exit code 1 if anything is.

    Notebooks out of step with their sources, leaked solutions, skeletons that pass, references
    that do not exist, and more.
    """
    from minipaged.course.catalog import catalog
    from minipaged.course.dev.build import find_root
    from minipaged.course.dev.lint import lint

    course = catalog()
    lines = lint(find_root(Path.cwd()), course)
    if lines:
        print(*lines, f"{len(lines)} problem{'' if len(lines) == 1 else 's'}", sep="\n")
    else:
        counts = f"{len(course.lessons)} lessons and {len(course.exercises)} exercises"
        print(f"{counts}: nothing to mend")
    return 1 if lines else 0


@app.command("mutate", epilog="Example: minipaged dev mutate 00.1 02 --limit 40")
def dev_mutate(
    ids: Annotated[
        list[str] | None, typer.Argument(help="Of exercises or lessons; without any, all.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Mutants of an exercise at most, drawn by the seed.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the hidden checks.")] = 0,
) -> int:
    """Say which small mistakes in a solution its check lets through.

    Exit code 1 if there is one that survivors.toml does not explain.
    """
    from rich.console import Console

    from minipaged.course.dev.build import find_root
    from minipaged.course.dev.mutate import run

    return run(find_root(Path.cwd()), ids or (), Console(), seed=seed, limit=limit)
