"""All sections of gpu_kernels.py, one after another."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch

from gpu_bench import correctness, rivals, speed, variants
from gpu_bench.batches import Pools
from gpu_bench.clocks import CudaClock, WallClock
from gpu_bench.figures import Heads
from gpu_bench.report import DRY, Section, console, environment, l2_bytes, show, write_json
from gpu_bench.sizes import dry, on_a_card
from gpu_bench.speed import Bench
from minipaged.kernels.triton_backend import require_usable

SECTIONS: dict[str, tuple[str, str, Callable[[Bench, Section], None]]] = {
    "correctness": (
        "Correct",
        correctness.NOTE,
        lambda bench, section: correctness.fill(section, bench.sizes, bench.device),
    ),
    "bandwidth": (
        "A large copy on the device",
        "bytes read + bytes written a second: what the shares below are shares of",
        lambda bench, section: section.rows.append(speed.copy_bandwidth(bench)),
    ),
    "decode": ("Decode", speed.SPEED_NOTE, speed.decode),
    "layouts": (
        "Decode by block size and layout of K",
        "columns as above",
        speed.layouts,
    ),
    "splits": (
        "Decode by number of pieces",
        "the rule is choose_split_size of minipaged/kernels/splits.py; columns as above",
        speed.splits,
    ),
    "variants": ("Ways of compiling", variants.NOTE, variants.fill),
    "rivals": ("Decode, others' kernels on the same pools", "columns as above", rivals.fill),
}
NEEDED = {"bandwidth"}
"""Run whatever is asked for: others divide by it."""


def run(args: argparse.Namespace) -> int:
    """Run the sections asked for; 0, or 1 if a kernel was wrong, or 2 if none can run here."""
    began = time.perf_counter()
    device = torch.device("cpu" if args.dry else "cuda")
    try:
        heads = Heads.parse(args.shape) if args.shape else None
        only = _asked(args.only)
        require_usable(device)
    except ValueError as error:
        print(error)
        return 2
    torch.manual_seed(0)
    sizes = dry(heads) if args.dry else on_a_card(heads or Heads(32, 8, 128), args.seconds)
    bench = Bench(
        sizes=sizes,
        device=device,
        dtype=getattr(torch, args.dtype),
        block_size=args.block_size,
        clock=WallClock() if args.dry else CudaClock(),
        pools=Pools(device, l2_bytes(device)),
    )
    settings = {"H/KV/D": str(sizes.heads), "dtype": args.dtype, "block size": args.block_size}
    header: dict[str, Any] = {
        "script": "gpu_kernels",
        "dry": args.dry,
        **environment(device),
        **settings,
    }
    out = console()
    out.print(DRY if args.dry else "", *(f"{k}: {v}" for k, v in header.items()), sep="\n")
    sections = []
    for name in SECTIONS:
        if name in only or name in NEEDED:
            left = args.seconds - (time.perf_counter() - began)
            sections.append(_run_one(name, bench, None if args.dry else left))
            show(sections[-1], out, args.dry)
    seconds = time.perf_counter() - began
    wrong = [row for one in sections for row in one.rows if row.get("verdict") == "WRONG"]
    out.print(f"{len(wrong)} wrong of {_checked(sections)} cases; {seconds:.0f} s in all")
    if args.json:
        write_json(args.json, {**header, "wrong": len(wrong), "seconds": seconds}, sections)
    return 1 if wrong else 0


def _checked(sections: list[Section]) -> int:
    return sum("verdict" in row for section in sections for row in section.rows)


def _asked(only: str | None) -> set[str]:
    """Names of sections, with commas between; None is all of them."""
    names = set(only.split(",")) if only else set(SECTIONS)
    if unknown := names - set(SECTIONS):
        raise ValueError(f"--only names {sorted(unknown)}: there are {', '.join(SECTIONS)}")
    return names


def _run_one(name: str, bench: Bench, left: float | None) -> Section:
    """A section within its share of the time, or what is left of all."""
    title, note, fill = SECTIONS[name]
    seconds = None if left is None else min(left, bench.sizes.seconds.get(name, left))
    section = Section(name, title, note, seconds)
    section.begin()
    try:
        fill(bench, section)
    except torch.cuda.OutOfMemoryError:
        section.left_out.append("the rest (out of memory)")
        bench.pools.free()
    section.end()
    return section
