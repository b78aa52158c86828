"""Which way of compiling the attention kernels is fastest, for every row of configs.py."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from gpu_bench.ahead import compile_ahead
from gpu_bench.batches import meta_of
from gpu_bench.clocks import Call, first_line
from gpu_bench.figures import Choice, Heads, Key, choose, neighbours, short_text, table_text
from gpu_bench.report import Section
from gpu_bench.sizes import DECODE_KEYS, PREFILL_KEYS, turn
from gpu_bench.speed import Bench, decodes
from minipaged.kernels import configs, triton_attention
from minipaged.kernels.configs import KernelConfig

DTYPES = {2: torch.bfloat16, 4: torch.float32}
KINDS = ("decode", "prefill")

NOTE = (
    "geometric mean of the times to the shipped variant's over the shapes named; a gain of 2 % or "
    "less changes nothing. First every row's variants that differ from the shipped one in one "
    "figure, then all combinations, until the time is up. head_dim and bytes of a number: up to."
)

Times = dict[KernelConfig, dict[str, float]]


def fill(bench: Bench, section: Section) -> None:
    """Time the variants, a row of the table for each row of configs.py, and print its tables."""
    work = [("decode", key) for key in DECODE_KEYS] + [("prefill", key) for key in PREFILL_KEYS]
    work.sort(key=lambda item: turn(item[1]))
    times: dict[tuple[str, Key], Times] = {item: {} for item in work}
    for whole in (False, True) if bench.sizes.full else (False,):
        for kind, key in work:
            tried, some = times[kind, key], 2 * (os.cpu_count() or 1)
            todo = [c for c in _variants(bench, kind, key, whole) if c not in tried]
            for start in range(0, len(todo), some):
                rest = f"{kind} {key}: {len(todo) - start} variants"
                if section.over(rest):
                    break
                tried |= _time_all(bench, section, kind, key, todo[start : start + some])
    chosen: dict[str, dict[Key, Choice]] = {kind: {} for kind in KINDS}
    for kind, key in work:
        choice = choose(times[kind, key], shipped(kind, key))
        chosen[kind][key] = choice
        section.rows.append(_row(kind, key, choice, times[kind, key]))
    section.text = "\n\n".join(
        text for kind in KINDS for text in (_shipped_text(kind), _chosen_text(kind, chosen[kind]))
    )


def shipped(kind: str, key: Key) -> KernelConfig:
    """The variant that configs.py has for a row."""
    table = {"decode": configs.decode_config, "prefill": configs.prefill_config}
    return table[kind](*key)


def _variants(bench: Bench, kind: str, key: Key, whole: bool) -> list[KernelConfig]:
    """Those to be timed: one axis changed, or all combinations."""
    axes, now = dict(bench.sizes.axes), shipped(kind, key)
    if not whole:
        if kind == "prefill" and bench.sizes.full:
            axes["rows"] = tuple(rows for rows in (now.rows // 2, now.rows * 2) if rows >= 16)
        return neighbours(now, axes)
    return [
        replace(now, **dict(zip(axes, values, strict=True)))
        for values in itertools.product(*axes.values())
    ]


def _time_all(
    bench: Bench, section: Section, kind: str, key: Key, todo: list[KernelConfig]
) -> Times:
    """Times of the variants at every shape; those that do not compile or run are named."""
    calls: dict[KernelConfig, dict[str, list[Call]]] = {config: {} for config in todo}
    for shape, made in _shapes(bench, section, kind, key, todo):
        for config, some in made.items():
            calls[config][shape] = some
    compile_ahead(some[0] for shapes in calls.values() for some in shapes.values())
    times: Times = {}
    for config, shapes in calls.items():
        if section.over(f"{kind} {key}: {short_text(config)}"):
            continue
        try:
            times[config] = {s: bench.clock.measure(some).best for s, some in shapes.items()}
        except Exception as error:  # too much shared memory, mostly
            section.left_out.append(f"{kind} {key} {short_text(config)}: {first_line(error)}")
    return times


def _shapes(
    bench: Bench, section: Section, kind: str, key: Key, todo: list[KernelConfig]
) -> Iterator[tuple[str, dict[KernelConfig, list[Call]]]]:
    """Each shape by name, and for each variant the calls to be timed at it."""
    dim, dtype = key[0], DTYPES[key[1]]
    heads = Heads(*bench.sizes.tuned_heads, dim)
    if kind == "prefill":
        q, k, v, meta = _chunks(bench, heads, dtype)
        prefill = partial(triton_attention.paged_prefill, q, k, v, meta)
        yield "chunks", {config: [partial(prefill, config=config)] for config in todo}
        return
    fitting = [s for s in bench.sizes.tuned if bench.pools.fits(heads, *s, dtype)]
    section.left_out += [
        f"decode {key} at {s} (memory)" for s in bench.sizes.tuned if s not in fitting
    ]
    for size in fitting:  # the largest first: the pools then do not move
        batch = bench.pools.batch(heads, *size, dtype, bench.block_size)
        yield f"{size[0]} x {size[1]}", {config: decodes(batch, config=config) for config in todo}


def _chunks(bench: Bench, heads: Heads, dtype: torch.dtype) -> tuple[Any, ...]:
    """Chunks at the end of their contexts, with decodes beside them, as in a full step."""
    count, queries, context, decodes = bench.sizes.chunks
    batch = bench.pools.batch(
        heads, count + decodes, context, dtype, min(bench.block_size, context)
    )
    lens = [context] * (count + decodes)
    meta = meta_of([queries] * count + [1] * decodes, lens, batch.metas[0].block_tables)
    tokens = count * queries + decodes
    q = torch.randn(tokens, heads.query, heads.dim, device=bench.device).to(dtype)
    return q, batch.k_pool, batch.v_pool, meta


def _row(kind: str, key: Key, choice: Choice, times: Times) -> dict[str, Any]:
    now = shipped(kind, key)
    return {
        "kernel": kind,
        "head_dim": key[0],
        "bytes": key[1],
        "measured": choice.measured,
        "shapes": ", ".join(next(iter(times.values()), {})),
        "shipped": short_text(now),
        "shipped us": _times_text(times.get(now)),
        "chosen": "as shipped" if choice.config == now else short_text(choice.config),
        "chosen us": _times_text(times.get(choice.config)),
        "time / shipped": None if math.isnan(choice.ratio) else choice.ratio,
    }


def _times_text(times: dict[str, float] | None) -> str:
    return "-" if times is None else ", ".join(f"{us:.1f}" for us in times.values())


def _shipped_text(kind: str) -> str:
    rows = {key: (config, "") for key, config in getattr(configs, f"_{kind.upper()}").items()}
    return "shipped:\n" + table_text(f"_{kind.upper()}", rows)


def _chosen_text(kind: str, chosen: dict[Key, Choice]) -> str:
    rows = {
        key: (
            chosen[key].config,
            f"{chosen[key].measured} measured, time / shipped {chosen[key].ratio:.3f}"
            if chosen[key].measured
            else "as shipped, not measured",
        )
        for key in getattr(configs, f"_{kind.upper()}")
    }
    return "chosen here:\n" + table_text(f"_{kind.upper()}", rows)
