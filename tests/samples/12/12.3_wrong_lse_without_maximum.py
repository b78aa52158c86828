# says: lacks the maximum that was subtracted
import torch
import triton
import triton.language as tl


@triton.jit
def piece_kernel(
    q, k_pool, v_pool, block_tables, seq_lens, parts, part_lse,
    scale, split_size, table_width,
    GROUP: tl.constexpr, BLOCK_SIZE: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    seq, head, piece = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    num_heads, num_pieces = tl.num_programs(1), tl.num_programs(2)
    dims, within = tl.arange(0, DIM), tl.arange(0, BLOCK_SIZE)
    query = tl.load(q + (seq * num_heads + head) * DIM + dims)
    begin = piece * split_size
    length = tl.minimum(begin + split_size, tl.load(seq_lens + seq))
    total, mixture = 0.0, tl.full([DIM], 0.0, tl.float32)
    top = float("-inf")
    for first in range(begin, length, BLOCK_SIZE):
        entry = tl.load(block_tables + seq * table_width + first // BLOCK_SIZE)
        is_key = first + within < length
        rows = (entry * BLOCK_SIZE + within) * (num_heads // GROUP) + head // GROUP
        place = rows[:, None] * DIM + dims[None, :]
        keys = tl.load(k_pool + place, mask=is_key[:, None], other=0.0)
        values = tl.load(v_pool + place, mask=is_key[:, None], other=0.0)
        scores = tl.where(is_key, tl.sum(keys * query[None, :], 1) * scale, float("-inf"))
        new = tl.maximum(top, tl.max(scores, 0))
        shrink = tl.exp(top - new)
        weights = tl.exp(scores - new)
        total = total * shrink + tl.sum(weights, 0)
        mixture = mixture * shrink + tl.sum(weights[:, None] * values, 0)
        top = new
    has_keys = total > 0
    divisor = tl.where(has_keys, total, 1.0)
    said = tl.where(has_keys, tl.log(divisor), float("-inf"))
    row = (seq * num_pieces + piece) * num_heads + head
    tl.store(parts + row * DIM + dims, mixture / divisor)
    tl.store(part_lse + row, said)


def split_attention(q, k_pool, v_pool, block_tables, seq_lens, split_size):
    sequences, heads, dim = q.shape
    block_size, kv_heads = k_pool.shape[1:3]
    pieces = max(1, -(-int(seq_lens.max()) // split_size))
    parts = q.new_full((sequences, pieces, heads, dim), torch.nan)
    part_lse = q.new_full((sequences, pieces, heads), torch.nan)
    piece_kernel[(sequences, heads, pieces)](
        q, k_pool, v_pool, block_tables, seq_lens, parts, part_lse,
        dim**-0.5, split_size, block_tables.shape[1],
        GROUP=heads // kv_heads, BLOCK_SIZE=block_size, DIM=dim,
    )  # fmt: skip
    lse = part_lse.logsumexp(1)
    counted = (part_lse - lse[:, None]).exp()[..., None] * parts
    is_empty = (part_lse == -torch.inf)[..., None]
    return torch.where(is_empty, 0.0, counted).sum(1), lse
