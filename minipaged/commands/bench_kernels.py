"""`minipaged bench kernels`: what a compiler makes of the kernels for a card that is not there."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from minipaged.commands.telling import Report as Tell
    from minipaged.kernels.aot import Report
    from minipaged.kernels.aot_specs import Spec
    from minipaged.kernels.aot_targets import Target

_PIPE_WIDTH = 100
_SHORT = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}
NOTES = """\
kernel: dtype, head_dim, query heads per KV head; tile, warps, stages: its row in configs.py
regs: registers of a thread; stack: bytes that did not fit in them; spills: moves there and back
shared: bytes of shared memory of a program; per SM: programs at once (0: it cannot be launched)
async: 16-byte copies that a turn of the main loop starts ahead; 16 bit: loads of a single number
s: seconds to compile
-: the machine code does not tell"""


def bench_kernels_command(
    aot: Annotated[
        bool, typer.Option("--aot", help="Compile ahead of time and show what came out.")
    ] = False,
    target: Annotated[
        list[str] | None,
        typer.Option(help="A card: sm_80, sm_90, gfx942 ... (several times); sm_90 if left out."),
    ] = None,
    kernel: Annotated[
        list[str] | None,
        typer.Option(help="decode, merge, prefill, store or copy (several times); else all."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Every shape, in minutes, not a part of each.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Compile the Triton kernels for any card, without one.

    One row a kernel and shape: registers, spills, shared memory, how memory is read. It takes about
    a second a row. Times need a GPU: benchmarks/gpu_kernels.py.
    """
    if not aot:
        raise ValueError(
            "timing kernels needs a GPU and is done by benchmarks/gpu_kernels.py; add --aot to see "
            "without one what the compiler makes of them"
        )
    from minipaged.kernels.aot import targets_of
    from minipaged.kernels.aot_specs import KERNELS, specs

    chosen = specs(tuple(kernel or KERNELS), full=full)
    targets = targets_of(target or ["sm_90"])
    reports = _compile([(spec, card) for card in targets for spec in chosen])
    if as_json:
        print(json.dumps({"rows": [_as_data(report) for report in reports]}))
    else:
        _print(targets, reports)


def _compile(wanted: Sequence[tuple[Spec, Target]]) -> list[Report]:
    """Compile all, and say in a terminal how far it is; stdout is for the table alone."""
    from rich.console import Console

    from minipaged.commands.telling import telling
    from minipaged.kernels.aot import compile_for

    console, reports = Console(stderr=True), []
    silent: Tell = lambda what, number, total: None  # noqa: E731
    shown: AbstractContextManager[Tell] = nullcontext(silent)
    with telling(console) if console.is_terminal else shown as tell:
        for number, (spec, card) in enumerate(wanted, 1):
            tell(f"{card.name} {_name(spec)}", number, len(wanted))
            reports.append(compile_for(spec, card))
    return reports


def _name(spec: Spec) -> str:
    parts = [spec.kernel, _SHORT[spec.dtype], str(spec.head_dim)]
    if spec.chosen is not None:
        parts.append(f"x{spec.group}")
    return " ".join([*parts, *["packed"] * spec.packed, *["split"] * spec.split])


def _config(report: Report) -> str:
    config = report.spec.chosen
    return "" if config is None else f"{config.tile}/{config.num_warps}/{config.num_stages}"


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)


class Column(NamedTuple):
    """A heading of one or two lines, and the cell of a report."""

    heading: str
    cell: Callable[[Report], str]


_COLUMNS = (
    Column("tile/\nwarps/\nstages", _config),
    Column("regs", lambda report: str(report.code.registers)),
    Column("stack", lambda report: str(report.code.stack)),
    Column("spills", lambda report: str(report.code.spills)),
    Column("shared", lambda report: f"{report.shared:,}"),
    Column("per\nSM", lambda report: _or_dash(report.programs)),
    Column("async", lambda report: _or_dash(report.code.async_loads)),
    Column("16\nbit", lambda report: str(report.code.scalar_loads)),
    Column("s", lambda report: f"{report.seconds:.1f}"),
)


def _print(targets: Sequence[Target], reports: Sequence[Report]) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_PIPE_WIDTH)
    for target in targets:
        held = f"{target.shared_per_sm:,} bytes of shared memory in a multiprocessor"
        console.print(f"{target.name} ({target.example}): {held}\n", markup=False)
        rows = [report for report in reports if report.target == target]
        console.print(_table(rows, console))
        console.print()
    console.print(NOTES, markup=False)


def _table(reports: Sequence[Report], console: Console) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2 if console.width >= 90 else 1, 0, 0))
    table.add_column("kernel", no_wrap=True)
    for column in _COLUMNS:
        table.add_column(column.heading, justify="right", no_wrap=True)
    for report in reports:
        table.add_row(_name(report.spec), *(column.cell(report) for column in _COLUMNS))
    return table


def _as_data(report: Report) -> dict[str, Any]:
    spec, config = report.spec, report.spec.chosen
    return {
        "target": report.target.name,
        "kernel": spec.kernel,
        "dtype": spec.dtype,
        "head_dim": spec.head_dim,
        "group": spec.group,
        "packed": spec.packed,
        "split": spec.split,
        "config": None if config is None else asdict(config),
        **report.code._asdict(),
        "shared": report.shared,
        "buffers": report.buffers,
        "programs_per_sm": report.programs,
        "seconds": round(report.seconds, 3),
    }
