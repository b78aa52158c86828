"""Sections with a time budget; how they are printed and written."""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

DRY = "dry run: no figure here means anything"


@dataclass
class Section:
    """A table in the making. seconds: its budget; None for no limit (a dry run skips nothing).

    rows: what was measured; a column for every key. left_out: what the budget, the memory
    or an error kept from being measured, each with the reason. text: printed below the table.
    """

    name: str
    title: str
    note: str
    seconds: float | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    text: str = ""
    took: float = 0.0
    now: Callable[[], float] = time.perf_counter
    began: float = 0.0

    def begin(self) -> None:
        """The budget runs from here."""
        self.began = self.now()

    def over(self, what: str) -> bool:
        """Whether the budget is spent; then `what` is written down as left out."""
        if self.seconds is None or self.now() - self.began < self.seconds:
            return False
        self.left_out.append(f"{what} (time)")
        return True

    def end(self) -> None:
        self.took = self.now() - self.began


def console() -> Console:
    """As wide as a table needs where the output goes to a file."""
    return Console() if sys.stdout.isatty() else Console(width=150)


def show(section: Section, out: Console, dry: bool) -> None:
    """Print a section: its rows, what they mean, what was left out."""
    table = Table()
    names = list(dict.fromkeys(name for row in section.rows for name in row))
    for name in names:
        table.add_column(name, overflow="fold")
    for row in section.rows:
        style = "bold red" if row.get("verdict") == "WRONG" else None
        table.add_row(*(_cell(row.get(name)) for name in names), style=style)
    out.print(f"[bold]{section.title}[/bold]{f' ({DRY})' if dry else ''}")
    out.print(section.note, markup=False, highlight=False)
    out.print(table if section.rows else "no row")
    if section.text:
        out.print(section.text, markup=False, highlight=False)
    for line in grouped(section.left_out):
        out.print(f"left out: {line}", markup=False, highlight=False)
    out.print(f"{section.name} took {section.took:.1f} s\n", highlight=False)


def grouped(left_out: Iterable[str], most: int = 6) -> list[str]:
    """The first few that were left out, and how many more."""
    items = list(left_out)
    more = [f"and {len(items) - most} more"] if len(items) > most else []
    return items[:most] + more


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value)
    if value and abs(value) < 1e-2:
        return f"{value:.1e}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def environment(device: torch.device) -> dict[str, Any]:
    """Card, driver and versions."""
    found: dict[str, Any] = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": version_of("triton"),
        "device": "CPU, in Triton's interpreter",
    }
    if device.type == "cuda":
        card = torch.cuda.get_device_properties(device)
        found |= {
            "device": card.name,
            "compute capability": f"{card.major}.{card.minor}",
            "multiprocessors": card.multi_processor_count,
            "memory": f"{card.total_memory / 2**30:.0f} GiB",
            "L2": f"{l2_bytes(device) / 2**20:.0f} MiB",
            "driver": _driver(),
            "cuda": torch.version.cuda or torch.version.hip,
        }
    return found


def l2_bytes(device: torch.device) -> int:
    """Of the card's L2 cache; 64 MiB if torch does not say, 0 for a CPU."""
    if device.type != "cuda":
        return 0
    return getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0) or 64 * 2**20


def _driver() -> str:
    """As the kernel module says it; torch has no call for it."""
    try:
        words = Path("/proc/driver/nvidia/version").read_text().split()
    except OSError:
        return "unknown"
    return next((word for word in words if "." in word and word[0].isdigit()), "unknown")


def version_of(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def write_json(path: Path, content: dict[str, Any], sections: Iterable[Section]) -> None:
    """All that was printed, as one JSON object."""
    told = [
        {
            "name": one.name,
            "title": one.title,
            "note": one.note,
            "rows": one.rows,
            "left_out": one.left_out,
            "text": one.text,
            "seconds": round(one.took, 2),
        }
        for one in sections
    ]
    text = json.dumps({**content, "sections": told}, indent=1, default=str)
    path.write_text(text + "\n", encoding="utf-8")
