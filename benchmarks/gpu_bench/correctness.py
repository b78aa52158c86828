"""Every kernel against float64, with NaN in all memory that it may not read."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gpu_bench import moving
from gpu_bench.ahead import compile_ahead
from gpu_bench.cases import Case, decode_case, differing, make_case, mixed_case
from gpu_bench.clocks import first_line
from gpu_bench.figures import Heads
from gpu_bench.oracle import attention64, errors
from gpu_bench.report import Section
from gpu_bench.sizes import Sizes
from minipaged.kernels import triton_attention, triton_backend
from minipaged.kernels.configs import decode_config
from minipaged.kernels.layouts import pack_width

TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
"""Of an output, as a share of sum(weight x |v|): four roundings of 16 bit numbers (2^-11 and 2^-8),
and in float32 what sums and 2^x over a long context add up to."""

LSE_TOLERANCE = 1e-4
"""Absolute: scores are sums in float32, whatever the dtype."""

NOTE = (
    "error: largest |out - float64| as a share of sum(weight x |v|); of the LSE: absolute; of what "
    "is stored, copied or must be equal to the bit: numbers that differ. Unused slots, the blocks "
    "that table tails name, and outputs beforehand hold NaN."
)

Checked = tuple[float, float, float | None]
"""error, tolerance and error of the LSE."""


class Setting(NamedTuple):
    """What a kernel is tried on. lens: keys of each sequence."""

    heads: Heads
    dtype: torch.dtype
    block_size: int
    packed: bool
    lens: tuple[int, ...]
    device: torch.device

    def case(self, make: Callable[..., Case]) -> Case:
        return make(self.heads, self.dtype, self.block_size, self.lens, self.device)

    @property
    def tile(self) -> int:
        """Keys that the shipped decode kernel reads at once: also the fixed split tried here."""
        return decode_config(self.heads.dim, self.dtype.itemsize).tile

    def labels(self, name: str) -> dict[str, Any]:
        return {
            "kernel": name,
            "dtype": str(self.dtype).removeprefix("torch."),
            "K layout": "packed" if self.packed else "NHD",
            "H/KV/D": str(self.heads),
            "block size": self.block_size,
        }


def fill(section: Section, sizes: Sizes, device: torch.device) -> None:
    """A row for each case. What cannot run at all is a wrong row, too."""
    cases, some = list(_cases(sizes, device)), 2 * (os.cpu_count() or 1)
    for start in range(0, len(cases), some):
        group = cases[start : start + some]
        if section.seconds is None or section.now() - section.began < section.seconds:
            compile_ahead(check for _, check in group)
        for labels, check in group:
            what = " ".join(str(label) for label in labels.values())
            if start and section.over(what):
                continue
            try:
                section.rows.append(_row(labels, check))
            except torch.cuda.OutOfMemoryError:
                section.left_out.append(f"{what} (memory)")


def _row(labels: dict[str, Any], check: Callable[[], Checked]) -> dict[str, Any]:
    try:
        error, tolerance, lse = check()
    except torch.cuda.OutOfMemoryError:
        raise
    except Exception as failure:
        error, tolerance, lse = math.inf, 0.0, None
        labels = {**labels, "kernel": f"{labels['kernel']}: {first_line(failure)}"}
    right = error <= tolerance and (lse is None or lse <= LSE_TOLERANCE)
    return {
        **labels,
        "error": error,
        "tolerance": tolerance,
        "LSE error": lse,
        "LSE tolerance": None if lse is None else LSE_TOLERANCE,
        "verdict": "ok" if right else "WRONG",
    }


def _cases(
    sizes: Sizes, device: torch.device
) -> Iterator[tuple[dict[str, Any], Callable[[], Checked]]]:
    """What is looked at and how, the most important first."""
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        for packed in (False, True):
            if not packed or sizes.heads.dim % pack_width(dtype) == 0:
                at = Setting(sizes.heads, dtype, 16, packed, sizes.lens, device)
                for name, check in CHECKS.items():
                    yield at.labels(name), partial(check, at)
        for name, move in moving.CHECKS.items():
            if device.type == "cuda" or "host" not in name:
                at = Setting(moving.HEADS, dtype, 16, False, (), device)
                yield at.labels(name), partial(_exact, move, dtype, device)
    at = Setting(Heads(1, 1, 1), torch.float32, 16, False, (), device)
    yield at.labels("merge of empty pieces"), partial(empty_pieces, device)
    at = Setting(_BIG, torch.bfloat16, 16, False, (), device)
    yield at.labels("pool beyond 2^31 numbers"), partial(big_pool, device)
    for heads, block_size in sizes.others:
        for dtype in (torch.bfloat16, torch.float32):
            at = Setting(heads, dtype, block_size, False, sizes.lens, device)
            for name in ("decode, auto", "decode, fixed split", "chunks and decodes"):
                yield at.labels(name), partial(CHECKS[name], at)


def _exact(
    move: Callable[[torch.dtype, torch.device], int], dtype: torch.dtype, device: torch.device
) -> Checked:
    return float(move(dtype, device)), 0.0, None


def _decode(split: str) -> Callable[[Setting], Checked]:
    def check(at: Setting) -> Checked:
        case = at.case(decode_case)
        longest = case.meta.block_tables.shape[1] * at.block_size
        size = {"auto": None, "fixed": at.tile, "one": -(-longest // at.tile) * at.tile}[split]
        out, lse = triton_attention.paged_decode(
            case.q, case.k_as(at.packed), case.v_pool, case.meta,
            split_size=size, out=torch.full_like(case.q, math.nan),
        )  # fmt: skip
        return _against_oracle(case, out, lse)

    return check


def _chunks(at: Setting) -> Checked:
    case = at.case(mixed_case)
    out, lse = triton_attention.paged_prefill(
        case.q, case.k_as(at.packed), case.v_pool, case.meta, out=torch.full_like(case.q, math.nan)
    )
    return _against_oracle(case, out, lse)


def _backend(at: Setting) -> Checked:
    """As the engine calls it, with a fixed split: chunks in one launch, decodes in another."""
    case = at.case(mixed_case)
    attention = triton_backend.TritonAttention(split_size=at.tile)
    return _against_oracle(
        case, attention(case.q, case.k_as(at.packed), case.v_pool, case.meta), None
    )


def _invariance(at: Setting) -> Checked:
    """The shortest and the longest row alone and among all, with a fixed split: the same bits."""
    case = at.case(decode_case)
    lens, size = at.lens, at.tile
    pools = case.k_as(at.packed), case.v_pool
    whole = triton_attention.paged_decode(case.q, *pools, case.meta, split_size=size)
    wrong = 0
    for row in (min(range(len(lens)), key=lambda r: lens[r] or 10**9), lens.index(max(lens))):
        width = max(1, -(-lens[row] // at.block_size))
        meta = case.meta
        alone = type(meta)(
            meta.query_start_loc[:2],
            meta.seq_lens[row : row + 1],
            meta.block_tables[row : row + 1, :width].contiguous(),
        )
        got = triton_attention.paged_decode(case.q[row : row + 1], *pools, alone, split_size=size)
        wrong += sum(differing(a[0], b[row]) for a, b in zip(got, whole, strict=True))
    return float(wrong), 0.0, None


def _against_oracle(case: Case, out: Tensor, lse: Tensor | None) -> Checked:
    wrong = errors(out, lse, attention64(case.q, case.k_pool, case.v_pool, case.meta))
    return wrong.out, TOLERANCE[case.q.dtype], None if lse is None else wrong.lse


def _store(at: Setting) -> Checked:
    case = at.case(decode_case)
    expected = case.k_as(at.packed), case.v_pool
    pools = [torch.full_like(pool, math.nan) for pool in expected]
    triton_backend.write_kv(case.k, case.v, pools[0], pools[1], case.slots)
    return float(sum(map(differing, pools, expected))), 0.0, None


CHECKS: dict[str, Callable[[Setting], Checked]] = {
    "decode, one piece": _decode("one"),
    "decode, auto": _decode("auto"),
    "decode, fixed split": _decode("fixed"),
    "chunks and decodes": _chunks,
    "backend, fixed split": _backend,
    "row alone and in a batch": _invariance,
    "store": _store,
}


def empty_pieces(device: torch.device) -> Checked:
    """LSE [ln 2, -inf] with [3, NaN] gives 3; two empty pieces give 0 and -inf."""
    parts = torch.tensor([[3.0, math.nan], [math.nan, math.nan]], device=device)
    part_lse = torch.tensor([[math.log(2), -math.inf], [-math.inf, -math.inf]], device=device)
    starts = torch.arange(3, device=device)
    out, lse = parts.new_full((2, 1, 1), math.nan), parts.new_full((2, 1), math.nan)
    triton_attention.merge_splits(parts[..., None, None], part_lse[..., None], starts, out, lse)
    right = out.flatten().tolist() == [3.0, 0.0]
    said = lse.flatten().tolist()
    return 0.0 if right and said[1] == -math.inf else math.inf, 0.0, abs(said[0] - math.log(2))


_BIG = Heads(16, 8, 128)


def big_pool(device: torch.device) -> Checked:
    """Blocks that begin at number 2^31 and beyond are stored, copied, and read by both kernels."""
    first = 2**31 // (16 * _BIG.kv * _BIG.dim)
    case = make_case(
        _BIG, torch.bfloat16, 16, [1, 2], [20, 17], device, first_block=first, num_blocks=first + 8
    )
    used = slice(first, first + 6)  # four with keys, two of NaN
    expected = [pool[used].clone() for pool in (case.k_pool, case.v_pool)]
    for pool in (case.k_pool, case.v_pool):
        pool[used] = math.nan
    triton_backend.write_kv(case.k, case.v, case.k_pool, case.v_pool, case.slots)
    wrong = differing(case.k_pool[used], expected[0]) + differing(case.v_pool[used], expected[1])
    triton_backend.copy_blocks(case.v_pool, [(int(case.meta.block_tables[0, 0]), first + 7)])
    wrong += differing(case.v_pool[first + 7], case.v_pool[int(case.meta.block_tables[0, 0])])
    if wrong:
        return math.inf, 0.0, None
    out, lse = triton_attention.paged_prefill(case.q, case.k_pool, case.v_pool, case.meta)
    triton_attention.paged_decode(case.q, case.k_pool, case.v_pool, case.meta, out=out)
    return _against_oracle(case, out, lse)
