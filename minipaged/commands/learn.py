"""The commands of a learner and of a teacher: the loop through the exercises, and grading."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    """Put these commands beside the others."""
    app.command(epilog="Example: minipaged grade exercises/00_tour.ipynb")(grade)


def grade(
    paths: Annotated[list[Path], typer.Argument(help="Notebooks, or folders of them.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    seed: Annotated[
        int | None, typer.Option(help="Of the hidden checks; drawn if left out.")
    ] = None,
) -> int:
    """Give points for exercise notebooks.

    The exit code is 0 if every exercise passed, 1 if not.
    """
    from rich.console import Console

    from minipaged.course.grade import exit_code
    from minipaged.course.grade import grade as grade_notebooks
    from minipaged.course.report import render, to_json

    reports = grade_notebooks(paths, seed)
    if as_json:
        print(to_json(reports))
    else:
        render(reports, Console())
    return exit_code(reports)
