"""A progress bar in a terminal; elsewhere a plain line for each thing as it begins."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

Report = Callable[[str, int, int], None]


@contextlib.contextmanager
def telling(console: Console) -> Iterator[Report]:
    """Gives report(what, number from 1 on, of how many), to call when each thing begins."""
    if not console.is_terminal:
        yield lambda what, number, total: print(what, flush=True)
        return
    columns = (
        BarColumn(20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=None, start=False)

        def report(what: str, number: int, total: int) -> None:
            progress.start_task(task)
            progress.update(task, description=what, completed=number - 1, total=total)

        yield report
        for one in progress.tasks:
            progress.update(task, description="", completed=one.total, total=one.total)
