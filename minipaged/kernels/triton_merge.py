"""Merge the pieces of split decode attention by their LSE.

Piece s brings o_s, what it read, and L_s = log sum exp(score) over its keys. The whole is
o = sum exp(L_s - L) o_s with L = log sum exp(L_s): each piece counts by its share of the weights
(Flash-Decoding, Dao et al. 2023; FlashInfer, include/flashinfer/attention/cascade.cuh).
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["num_splits"])
def merge_kernel(
    parts, part_lse, out, lse, query_start_loc, num_splits,
    HEAD_DIM: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    """Program (b, h): query head h of sequence b, if that has exactly one query.

    parts [B, splits, H, HEAD_DIM], part_lse [B, splits, H] -> out [T, H, HEAD_DIM], lse [T, H].
    The pieces are added one after another and not as a tree: an empty piece then changes no bit,
    so a row's result does not depend on how many pieces its longest neighbour has.
    """
    seq, head, num_heads = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    token = tl.load(query_start_loc + seq).to(tl.int64)
    if tl.load(query_start_loc + seq + 1) - token != 1:
        return
    dims = tl.arange(0, DIM)
    first = seq.to(tl.int64) * num_splits * num_heads + head
    largest = tl.load(part_lse + first)
    for split in range(1, num_splits):
        largest = tl.maximum(largest, tl.load(part_lse + first + split * num_heads))
    base = tl.where(largest == float("-inf"), 0.0, largest)
    total = 0.0
    acc = tl.zeros([DIM], tl.float32)
    for split in range(num_splits):
        row = first + split * num_heads
        weight = tl.exp(tl.load(part_lse + row) - base)
        part = tl.load(parts + row * HEAD_DIM + dims, mask=dims < HEAD_DIM, other=0.0)
        # what an empty piece left as its output means nothing, and 0 x NaN is NaN
        acc += tl.where(weight > 0, weight * part, 0.0)
        total += weight
    divisor = tl.where(total > 0, total, 1.0)
    row = token * num_heads + head
    at = out + row * HEAD_DIM + dims
    tl.store(at, (acc / divisor).to(out.dtype.element_ty), mask=dims < HEAD_DIM)
    tl.store(lse + row, largest + tl.log(divisor))
