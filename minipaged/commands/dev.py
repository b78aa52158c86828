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
    from minipaged.course.build import build, find_root

    written = build(find_root(Path.cwd()), force=force, lessons=lessons or (), report=print)
    print(f"{len(written)} notebooks built")


@app.command("check", epilog="Example: minipaged dev check")
def dev_check() -> int:
    """Say which notebooks are out of step with their sources; exit code 1 if any."""
    from minipaged.course.build import find_root, stale

    lines = stale(find_root(Path.cwd()))
    print("\n".join(lines) or "every notebook is in step with its source")
    return 1 if lines else 0
