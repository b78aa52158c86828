"""`minipaged compare`: every scheduler and cache on one workload, in one table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from minipaged.commands.engine_options import takes_engine_options

if TYPE_CHECKING:
    from minipaged.compare_rows import Row
    from minipaged.compare_workloads import Workload

_PIPE_WIDTH = 100
_OWN = "The workload's own if left out."


def add_to(app: typer.Typer) -> None:
    """Put the command into the command line."""
    command = takes_engine_options(compare_command)
    app.command("compare", epilog="Example: minipaged compare --workload e2")(command)


def compare_command(
    workload: Annotated[
        str,
        typer.Option(help="e2, e7, c21, mixed, pressure, thrash, long-prompts or shared-prefix."),
    ] = "mixed",
    only: Annotated[
        list[str] | None, typer.Option(help="A row to show; may be given several times.")
    ] = None,
    requests: Annotated[int | None, typer.Option(help=f"Requests in all. {_OWN}")] = None,
    prompt_len: Annotated[
        tuple[int, int] | None, typer.Option(help=f"Prompt tokens, LO HI. {_OWN}")
    ] = None,
    output_len: Annotated[
        tuple[int, int] | None, typer.Option(help=f"Output tokens, LO HI. {_OWN}")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help=f"What users allow, whatever is written. {_OWN}")
    ] = None,
    arrival_rate: Annotated[
        float | None, typer.Option(help=f"Arrivals per second; 0: all at once. {_OWN}")
    ] = None,
    shared_prefix: Annotated[
        int | None, typer.Option(help=f"Tokens that all prompts begin with. {_OWN}")
    ] = None,
    seed: Annotated[int | None, typer.Option(help=f"Of all that is drawn. {_OWN}")] = None,
    block_size: Annotated[
        int | None, typer.Option(help="Tokens per block; 16 if left out.")
    ] = None,
    num_blocks: Annotated[int | None, typer.Option(help=f"Blocks in the pool. {_OWN}")] = None,
    max_num_seqs: Annotated[
        int | None, typer.Option(help=f"Requests that run at once. {_OWN}")
    ] = None,
    max_num_batched_tokens: Annotated[
        int | None, typer.Option(help=f"Token budget of a step. {_OWN}")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Save the comparison as SVG here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    engine_options: dict[str, Any] | None = None,
) -> None:
    """Compare schedulers, caches and preemption, without a model.

    Steps take the time of an 8B model on an H100. Engine options hold for all rows.
    """
    drawn = {
        "requests": requests,
        "prompt_len": prompt_len,
        "output_len": output_len,
        "max_tokens": max_tokens,
        "arrival_rate": arrival_rate,
        "shared_prefix": shared_prefix,
        "seed": seed,
    }
    options = {
        "block_size": block_size,
        "num_blocks": num_blocks,
        "max_num_seqs": max_num_seqs,
        "max_num_batched_tokens": max_num_batched_tokens,
        **(engine_options or {}),
    }
    _show(workload, _given(drawn), _given(options), only or [], plot, as_json)


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _show(
    name: str,
    drawn: dict[str, Any],
    options: dict[str, Any],
    only: list[str],
    plot: Path | None,
    as_json: bool,
) -> None:
    from minipaged.compare import compare
    from minipaged.viz.comparison import picture
    from minipaged.viz.svg import require_target

    if plot is not None:
        require_target(plot)
    work = _workload(name, drawn)
    rows = compare(work.make(), {**work.options, **options}, only)
    if as_json:
        print(json.dumps({"workload": name, "rows": [row.as_data() for row in rows]}))
    else:
        _print(f"{name}: {work.help}", rows)
    if plot is not None:
        plot.write_text(picture(rows, f"{name}: time").svg, encoding="utf-8")


def _workload(name: str, drawn: dict[str, Any]) -> Workload:
    """The named workload with what was asked for; ValueError if there is none, or it is fixed."""
    from minipaged.compare_workloads import WORKLOADS

    if name not in WORKLOADS:
        raise ValueError(f"there is no workload {name!r}: choose from {', '.join(WORKLOADS)}")
    work = WORKLOADS[name]
    if not drawn:
        return work
    if work.drawn is None:
        which = ", ".join(drawn)
        raise ValueError(f"workload {name!r} is fixed, but {which} is given: take 'mixed', say")
    return replace(work, make=replace(work.drawn, **drawn))


def _print(title: str, rows: list[Row]) -> None:
    from rich.console import Console

    from minipaged.compare import OPTIONS
    from minipaged.viz.comparison import NOTES, idle_longest, tables

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_PIPE_WIDTH)
    console.print(title, markup=False)
    for table in tables(rows, console.width):
        console.print()
        console.print(table)
    width = max(len(row.name) for row in rows)
    when = "\n".join(f"{row.name:{width}}  {OPTIONS[row.name].help}" for row in rows)
    for text in filter(None, (idle_longest(rows), NOTES, when)):
        console.print(f"\n{text}", markup=False)
