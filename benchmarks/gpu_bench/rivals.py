"""FlashInfer's and vLLM's decode kernels on the same pools, where they are installed."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from gpu_bench.batches import Batch
from gpu_bench.clocks import Call, first_line
from gpu_bench.report import Section, version_of
from gpu_bench.speed import Bench, add_row, decodes

SEGMENTS = 16
"""Pieces of a sequence in vLLM's split kernel, as its Triton backend sets them."""

WORKSPACE = 128 * 2**20
"""Bytes of FlashInfer's workspace, as its documentation recommends."""


def fill(bench: Bench, section: Section) -> None:
    """Rows as in the decode section; one that says so for a package that is not installed."""
    for name, package, make in (
        ("FlashInfer", "flashinfer-python", flashinfer_calls),
        ("vLLM unified attention", "vllm", vllm_calls),
    ):
        if version_of(package) == "not installed":
            section.rows.append({"backend": name, "remark": "not installed"})
            continue
        heads = bench.sizes.heads
        for batch_size in reversed(bench.sizes.batches):
            for context in reversed(bench.sizes.contexts):
                what = f"{name} at {batch_size} x {context}"
                if not bench.pools.fits(heads, batch_size, context, bench.dtype):
                    section.left_out.append(f"{what} (memory)")
                elif not section.over(what):
                    _rows(bench, section, (batch_size, context), name, make)


def _rows(
    bench: Bench,
    section: Section,
    size: tuple[int, int],
    name: str,
    make: Callable[[Batch], list[Call]],
) -> None:
    batch = bench.pools.batch(bench.sizes.heads, *size, bench.dtype, bench.block_size)
    ours = decodes(batch)
    try:
        calls = make(batch)
        apart = float((calls[0]() - ours[0]()[0]).abs().max())
    except Exception as error:
        section.left_out.append(f"{name} at {size[0]} x {size[1]}: {first_line(error)}")
        return
    if not apart < 0.05:
        section.left_out.append(
            f"{name} at {size[0]} x {size[1]}: differs from ours by {apart:.2g}"
        )
        return
    add_row(bench, section, batch, size, "minipaged triton", ours)
    add_row(bench, section, batch, size, name, calls)


def flashinfer_calls(batch: Batch) -> list[Call]:
    """BatchDecodeWithPagedKVCacheWrapper.run for each working set, planned beforehand."""
    from flashinfer import BatchDecodeWithPagedKVCacheWrapper

    room = torch.zeros(WORKSPACE, dtype=torch.uint8, device=batch.q.device)
    heads, block_size = batch.heads, batch.k_pool.shape[1]
    calls: list[Call] = []
    for meta in batch.metas:
        wrapper = BatchDecodeWithPagedKVCacheWrapper(room, "NHD", use_tensor_cores=True)
        count, blocks = meta.block_tables.shape
        starts = torch.arange(count + 1, dtype=torch.int32, device=batch.q.device) * blocks
        last = torch.full_like(starts[1:], block_size)
        wrapper.plan(
            starts,
            meta.block_tables.flatten().int(),
            last,
            heads.query,
            heads.kv,
            heads.dim,
            block_size,
            pos_encoding_mode="NONE",
            q_data_type=batch.q.dtype,
            kv_data_type=batch.k_pool.dtype,
        )
        calls.append(partial(wrapper.run, batch.q, (batch.k_pool, batch.v_pool)))
    return calls


def vllm_calls(batch: Batch) -> list[Call]:
    """vllm/v1/attention/ops/triton_unified_attention.py: unified_attention, whatever of its
    parameters the installed version has; with room for its split kernel."""
    from vllm.v1.attention.ops.triton_unified_attention import unified_attention

    known = inspect.signature(unified_attention).parameters
    context = int(batch.metas[0].seq_lens[0])
    room = {name: value for name, value in _segments(batch).items() if name in known}

    def call(out: Tensor, **tables: Tensor) -> Tensor:
        unified_attention(
            q=batch.q,
            k=batch.k_pool,
            v=batch.v_pool,
            out=out,
            max_seqlen_q=1,
            max_seqlen_k=context,
            softmax_scale=1 / math.sqrt(batch.heads.dim),
            causal=True,
            window_size=(-1, -1),
            softcap=0.0,
            q_descale=None,
            k_descale=None,
            v_descale=None,
            **tables,
            **room,
        )
        return out

    return [
        partial(
            call,
            torch.empty_like(batch.q),
            cu_seqlens_q=meta.query_start_loc.int(),
            seqused_k=meta.seq_lens.int(),
            block_table=meta.block_tables.int(),
        )
        for meta in batch.metas
    ]


def _segments(batch: Batch) -> dict[str, Any]:
    """What vLLM's Triton backend keeps for its split kernel (triton_attn.py)."""
    most = max(1, 128 // batch.heads.kv)
    shape = (most, batch.heads.query, SEGMENTS)
    dim = 1 << (batch.heads.dim - 1).bit_length()
    empty = partial(torch.empty, dtype=torch.float32, device=batch.q.device)
    return {
        "seq_threshold_3D": most,
        "num_par_softmax_segments": SEGMENTS,
        "softmax_segm_output": empty(*shape, dim),
        "softmax_segm_max": empty(shape),
        "softmax_segm_expsum": empty(shape),
    }
