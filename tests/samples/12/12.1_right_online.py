import torch
import triton
import triton.language as tl


@triton.jit
def merge_kernel(
    parts, part_lse, out, lse, num_pieces, HEAD_DIM: tl.constexpr, DIM: tl.constexpr
):
    h, t, heads = tl.program_id(0), tl.program_id(1), tl.num_programs(0)
    dims = tl.arange(0, DIM)
    top, total = float("-inf"), 0.0
    acc = tl.full([DIM], 0.0, tl.float32)
    for p in range(num_pieces):
        row = (t * num_pieces + p) * heads + h
        said = tl.load(part_lse + row)
        if said > float("-inf"):
            higher = tl.maximum(top, said)
            shrink, weight = tl.exp(top - higher), tl.exp(said - higher)
            part = tl.load(parts + row * HEAD_DIM + dims, mask=dims < HEAD_DIM, other=0.0)
            acc = acc * shrink + part * weight
            total = total * shrink + weight
            top = higher
    to = t * heads + h
    read, said = acc, top
    if total > 0:
        read, said = acc / total, top + tl.log(total)
    tl.store(out + to * HEAD_DIM + dims, read, mask=dims < HEAD_DIM)
    tl.store(lse + to, said)


def merge_pieces(parts, part_lse):
    tokens, num_pieces, heads, head_dim = parts.shape
    out = parts.new_full((tokens, heads, head_dim), torch.nan)
    lse = parts.new_full((tokens, heads), torch.nan)
    dim = triton.next_power_of_2(head_dim)
    merge_kernel[(heads, tokens)](
        parts, part_lse, out, lse, num_pieces, HEAD_DIM=head_dim, DIM=dim
    )
    return out, lse
