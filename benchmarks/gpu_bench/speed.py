"""The decode kernel's time by batch and context, by block size and layout, and by pieces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from gpu_bench.batches import Batch, Pools
from gpu_bench.clocks import Call, CudaClock, Timing, WallClock, first_line
from gpu_bench.figures import gb_per_s, split_size_of
from gpu_bench.report import Section
from gpu_bench.sizes import Sizes
from minipaged.kernels.configs import decode_config
from minipaged.kernels.reference import paged_attention
from minipaged.kernels.splits import choose_split_size, num_splits
from minipaged.kernels.triton_attention import INTERPRETER_SMS, paged_decode


@dataclass
class Bench:
    """What is measured on and with. copy_gb_per_s: of the card, measured first."""

    sizes: Sizes
    device: torch.device
    dtype: torch.dtype
    block_size: int
    clock: CudaClock | WallClock
    pools: Pools
    copy_gb_per_s: float = 0.0

    @property
    def num_sms(self) -> int:
        if self.device.type != "cuda":
            return INTERPRETER_SMS
        return torch.cuda.get_device_properties(self.device).multi_processor_count

    def speed(self, num_bytes: int, timing: Timing) -> dict[str, Any]:
        """The columns of a time: both medians, the rate by the better one, and its share."""
        rate = gb_per_s(num_bytes, timing.best)
        return {
            "eager us": timing.eager,
            "graph us": timing.graph,
            "GB/s": rate,
            "of copy": rate / self.copy_gb_per_s,
            "reps": timing.reps,
        }


SPEED_NOTE = (
    "medians. eager: one call from an idle card, Python and launches in it; graph: the same calls "
    "in one replayed CUDA graph, which leaves the kernels. GB/s: K, V, q, output and tables once, "
    "by the graph where there is one. of copy: share of the copy bandwidth (read + write) above; "
    "a kernel that only reads can pass 1. Each call reads another part of the pools, and the parts "
    "are 4 x the L2 cache together at least."
)


def copy_bandwidth(bench: Bench) -> dict[str, Any]:
    """GB/s of a large copy on the device, what is read and what is written both counted."""
    size = bench.sizes.copy_bytes
    if bench.device.type == "cuda":
        size = min(size, torch.cuda.mem_get_info(bench.device)[0] // 4)
    source, target = (torch.empty(size, dtype=torch.uint8, device=bench.device) for _ in range(2))
    source.zero_()
    timing = bench.clock.measure([partial(target.copy_, source)])
    bench.copy_gb_per_s = gb_per_s(2 * size, timing.best)
    return {"bytes copied": size, "us": timing.best, "GB/s": bench.copy_gb_per_s}


def decode(bench: Bench, section: Section) -> None:
    """Rows for batch x context: this kernel, SDPA on a contiguous cache, the torch backend."""
    heads, dtype = bench.sizes.heads, bench.dtype
    shapes = [(b, c) for b in bench.sizes.batches for c in bench.sizes.contexts]
    fitting = [s for s in shapes if bench.pools.fits(heads, *s, dtype)]
    if fitting:
        bench.pools.batch(heads, *max(fitting, key=lambda s: s[0] * s[1]), dtype, bench.block_size)
    for size in shapes:
        what = f"batch {size[0]} x context {size[1]}"
        if size not in fitting:
            section.left_out.append(f"{what} (memory)")
        elif not section.over(what):
            batch = bench.pools.batch(heads, *size, dtype, bench.block_size)
            for name, calls in backends(batch).items():
                add_row(bench, section, batch, size, name, calls)


def backends(batch: Batch) -> dict[str, list[Call]]:
    """The same step by each that is always there."""
    q, k, v = batch.q, batch.k_pool, batch.v_pool
    return {
        "minipaged triton": decodes(batch),
        "SDPA, contiguous": [partial(sdpa, q, *pair) for pair in batch.dense],
        "minipaged torch": [partial(paged_attention, q, k, v, meta) for meta in batch.metas],
    }


def add_row(
    bench: Bench,
    section: Section,
    batch: Batch,
    size: tuple[int, int],
    name: str,
    calls: list[Call],
) -> None:
    """Time `calls` and add their row; one that cannot run is named."""
    try:
        # its gathers are many launches: a graph of them all would only cost time
        timing = bench.clock.measure(calls, graph=name != "minipaged torch")
    except Exception as error:
        section.left_out.append(
            f"{name} at batch {size[0]} x context {size[1]}: {first_line(error)}"
        )
        return
    ours = next(
        (
            row["graph us"] or row["eager us"]
            for row in section.rows
            if (row["batch"], row["context"]) == size and row["backend"] == "minipaged triton"
        ),
        timing.best,
    )
    section.rows.append(
        {
            "batch": size[0],
            "context": size[1],
            "backend": name,
            "MB": batch.num_bytes / 1e6,
            **bench.speed(batch.num_bytes, timing),
            "time / ours": timing.best / ours,
        }
    )
    if timing.remark.startswith("no graph:"):
        section.left_out.append(f"{name}, {size[0]} x {size[1]}: {timing.remark}")


def sdpa(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """torch's attention of q [B, H, D] over contiguous k, v [B, S, KV, D] -> [B, KV, group, D].

    The query heads of a KV head go as queries of it, so that K and V are read once.
    """
    batch, heads, dim = q.shape
    kv_heads = k.shape[2]
    folded = q.view(batch, kv_heads, heads // kv_heads, dim)
    return functional.scaled_dot_product_attention(folded, k.transpose(1, 2), v.transpose(1, 2))


def layouts(bench: Bench, section: Section) -> None:
    """Block sizes and both layouts of K at one shape."""
    heads, (batch_size, context) = bench.sizes.heads, bench.sizes.layouts_at
    for block_size in bench.sizes.block_sizes:
        for packed in (False, True):
            name = f"block size {block_size}, {'packed' if packed else 'NHD'}"
            if section.over(name):
                continue
            if not bench.pools.fits(heads, batch_size, context, bench.dtype):
                section.left_out.append(f"{name} (memory)")
                continue
            batch = bench.pools.batch(
                heads, batch_size, context, bench.dtype, block_size, packed=packed
            )
            section.rows.append(
                {
                    "block size": block_size,
                    "K layout": "packed" if packed else "NHD",
                    "batch": batch_size,
                    "context": context,
                    **bench.speed(batch.num_bytes, bench.clock.measure(decodes(batch))),
                }
            )


def splits(bench: Bench, section: Section) -> None:
    """Numbers of pieces at small batches, beside the number that the rule takes."""
    heads = bench.sizes.heads
    tile = decode_config(heads.dim, bench.dtype.itemsize).tile
    for batch_size in bench.sizes.split_batches:
        for context in bench.sizes.contexts:
            what = f"batch {batch_size} x context {context}"
            if section.over(what):
                continue
            if not bench.pools.fits(heads, batch_size, context, bench.dtype):
                section.left_out.append(f"{what} (memory)")
                continue
            rule = choose_split_size(
                batch_size, heads.kv, context, tile=tile, num_sms=bench.num_sms
            )
            sizes = {split_size_of(pieces, context, tile) for pieces in bench.sizes.pieces} | {rule}
            batch = bench.pools.batch(heads, batch_size, context, bench.dtype, bench.block_size)
            section.rows += _split_rows(bench, batch, context, sorted(sizes, reverse=True), rule)


def _split_rows(
    bench: Bench, batch: Batch, context: int, sizes: list[int], rule: int
) -> list[dict[str, Any]]:
    """A row for each split size, with its time to the fastest one's."""
    timings = {size: bench.clock.measure(decodes(batch, split_size=size)) for size in sizes}
    fastest = min(timing.best for timing in timings.values())
    return [
        {
            "batch": len(batch.q),
            "context": context,
            "pieces": num_splits(context, size),
            "keys a piece": size,
            "rule": "<- the rule" if size == rule else "",
            **bench.speed(batch.num_bytes, timing),
            "time / fastest": timing.best / fastest,
        }
        for size, timing in timings.items()
    ]


def decodes(batch: Batch, **options: Any) -> list[Call]:
    """paged_decode of each working set in turn."""
    decode = partial(paged_decode, batch.q, batch.k_pool, batch.v_pool, **options)
    return [partial(decode, meta) for meta in batch.metas]
