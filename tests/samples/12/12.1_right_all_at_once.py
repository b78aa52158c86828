import torch
import triton
import triton.language as tl


@triton.jit
def merge_kernel(
    parts, part_lse, out, lse, num_pieces, HEAD_DIM: tl.constexpr, DIM: tl.constexpr, PIECES: tl.constexpr
):
    h, t, heads = tl.program_id(0), tl.program_id(1), tl.num_programs(0)
    dims, pieces = tl.arange(0, DIM), tl.arange(0, PIECES)
    rows = (t * num_pieces + pieces) * heads + h
    lses = tl.load(part_lse + rows, mask=pieces < num_pieces, other=float("-inf"))
    largest = tl.max(lses, 0)
    weights = tl.exp(lses - tl.where(largest == float("-inf"), 0.0, largest))
    seen = (weights > 0)[:, None] & (dims < HEAD_DIM)[None, :]
    part = tl.load(parts + rows[:, None] * HEAD_DIM + dims[None, :], mask=seen, other=0.0)
    total = tl.sum(weights, 0)
    divisor = tl.where(total > 0, total, 1.0)
    to = t * heads + h
    read = tl.sum(weights[:, None] * part, 0) / divisor
    tl.store(out + to * HEAD_DIM + dims, read, mask=dims < HEAD_DIM)
    tl.store(lse + to, largest + tl.log(divisor))


def merge_pieces(parts, part_lse):
    tokens, num_pieces, heads, head_dim = parts.shape
    out = parts.new_full((tokens, heads, head_dim), torch.nan)
    lse = parts.new_full((tokens, heads), torch.nan)
    dim = triton.next_power_of_2(head_dim)
    merge_kernel[(heads, tokens)](
        parts, part_lse, out, lse, num_pieces, HEAD_DIM=head_dim, DIM=dim,
        PIECES=triton.next_power_of_2(num_pieces),
    )
    return out, lse
