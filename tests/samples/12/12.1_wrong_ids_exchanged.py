# says: tl.program_id(0) is the head
import torch
import triton
import triton.language as tl


@triton.jit
def merge_kernel(
    parts, part_lse, out, lse, num_pieces, HEAD_DIM: tl.constexpr, DIM: tl.constexpr
):
    h, t, heads = tl.program_id(1), tl.program_id(0), tl.num_programs(0)
    dims = tl.arange(0, DIM)
    real = dims < HEAD_DIM
    largest = tl.load(part_lse + t * num_pieces * heads + h)
    for p in range(1, num_pieces):
        largest = tl.maximum(largest, tl.load(part_lse + (t * num_pieces + p) * heads + h))
    base = tl.where(largest == float("-inf"), 0.0, largest)
    total = 0.0
    acc = tl.full([DIM], 0.0, tl.float32)
    for p in range(num_pieces):
        row = (t * num_pieces + p) * heads + h
        weight = tl.exp(tl.load(part_lse + row) - base)
        part = tl.load(parts + row * HEAD_DIM + dims, mask=real, other=0.0)
        acc += tl.where(weight > 0, weight * part, 0.0)
        total += weight
    divisor = tl.where(total > 0, total, 1.0)
    to = t * heads + h
    tl.store(out + to * HEAD_DIM + dims, acc / divisor, mask=real)
    tl.store(lse + to, largest + tl.log(divisor))


def merge_pieces(parts, part_lse):
    tokens, num_pieces, heads, head_dim = parts.shape
    out = parts.new_full((tokens, heads, head_dim), torch.nan)
    lse = parts.new_full((tokens, heads), torch.nan)
    dim = triton.next_power_of_2(head_dim)
    merge_kernel[(heads, tokens)](
        parts, part_lse, out, lse, num_pieces, HEAD_DIM=head_dim, DIM=dim
    )
    return out, lse
