# %% [markdown]
# # Exercises 11 · The decode kernel
#
# An address, a table of block sizes, a kernel and eight questions. Lesson 11
# (`lessons/11_decode_kernel.ipynb`) leads up to them. At the end of this notebook the tutor reads
# through your kernel, prompts and answers alike.
#
# Kernels need Triton, which there is for Linux only. They run in its interpreter: no GPU is needed.

# %%
import os

from minipaged.course.needs import require_triton

os.environ["TRITON_INTERPRET"] = "1"  # run kernels as Python; set before triton is imported
require_triton()

# %% [markdown]
# ## 11.1 The address of a number
#
# Write `offset(block_table, token, head, d, shape, x)`: at which place of the K pool, counted in
# numbers from its first one, is number `d` of what KV head `head` keeps of token `token`?
#
# - `block_table`: a list of block numbers, those of the request.
# - `shape`: `(block_size, num_kv_heads, head_dim)`.
# - `x`: 0 for the layout `[block, slot, head, d]`. Else the pool is packed by x: `[block, head,
#   d // x, slot, d % x]`.
# - IndexError if there is no such number: `token`, `head` or `d` is negative or too large. A token
#   is too large if the table has no block for it.
# - ValueError if `x` is not 0 and does not divide `head_dim`, or is negative. (No call is wrong in
#   both ways.)
#
# An example: with the table [2, 0], blocks of 4, 2 KV heads and head_dim 8, number 3 of head 1 of
# token 5 is at 27, and with x = 4 at 39.


# %% exercise="11.1"
def offset(block_table, token, head, d, shape, x):
    """Where in the K pool one number lies, counted in numbers."""
    ### BEGIN SOLUTION
    block_size, num_kv_heads, head_dim = shape
    if x < 0 or (x and head_dim % x):
        raise ValueError(f"x is {x}, and head_dim {head_dim} is no multiple of it")
    limits = (len(block_table) * block_size, num_kv_heads, head_dim)
    for name, value, limit in zip(("token", "head", "d"), (token, head, d), limits, strict=True):
        if not 0 <= value < limit:
            raise IndexError(f"{name} is {value}: it must be from 0 to {limit - 1}")
    block, slot = block_table[token // block_size], token % block_size
    if x == 0:
        return ((block * block_size + slot) * num_kv_heads + head) * head_dim + d
    group = (block * num_kv_heads + head) * (head_dim // x) + d // x
    return (group * block_size + slot) * x + d % x
    ### END SOLUTION


# %% check="11.1"
from minipaged.course.check import check

check("11.1", offset)

# %% [markdown]
# ## 11.2 Block sizes compared
#
# Write `block_figures(block_size, layout, lengths, head_dim, number_bytes)`: what a block size
# costs and what it gives, as a dictionary.
#
# - `layout`: `"NHD"`, which is `[block, slot, head, d]`, or `"packed"` by 16 bytes. ValueError for
#   any other. The pool has more than one KV head.
# - `lengths`: the tokens that each of the requests has stored.
# - `head_dim`: numbers of a head, of `number_bytes` bytes each. Together they are a multiple of 16
#   bytes.
#
# The keys of the result:
#
# - `"run"`: of the bytes that *one* instruction loads of K, how many lie side by side, at most? 32
#   threads load 16 bytes each, beginning with a block's first key. In NHD they take key after key,
#   one row whole before the next; packed, the same 16 bytes of 32 keys, one key after the other.
# - `"tile"`: bytes of K in one block, of one head.
# - `"table"`: bytes of all block tables: 4 an entry, and no entry for a block without a token.
# - `"expected_waste"`: slots that stay empty on average, all requests together, if lengths are as
#   they come: (block_size - 1) / 2 for each. A float.
# - `"waste"`: slots that these requests leave empty.


# %% exercise="11.2"
def block_figures(block_size, layout, lengths, head_dim, number_bytes):
    """Bytes of one instruction, of a tile and of the tables; slots that stay empty."""
    ### BEGIN SOLUTION
    row = head_dim * number_bytes
    side_by_side = {"NHD": row, "packed": 16 * block_size}
    if layout not in side_by_side:
        raise ValueError(f"layout is {layout!r}: choose NHD or packed")
    blocks = [-(-length // block_size) for length in lengths]
    return {
        "run": min(32 * 16, side_by_side[layout]),
        "tile": block_size * row,
        "table": 4 * sum(blocks),
        "expected_waste": len(lengths) * (block_size - 1) / 2,
        "waste": block_size * sum(blocks) - sum(lengths),
    }
    ### END SOLUTION


# %% check="11.2"
from minipaged.course.check import check

check("11.2", block_figures)

# %% [markdown]
# ## 11.3 The decode kernel
#
# Write `decode_kernel`. One program works out what the query heads of *one* KV head read for *one*
# query token. It is started by `launch`, which is finished: it works out for every token whose it
# is and how many keys it reads, so your kernel serves prompts as well.


# %% given=true
def launch(kernel, q, k_pool, v_pool, meta, tile):
    """Start a program for each token and KV head; what all queries of a step read."""
    import torch

    tokens, heads, dim = q.shape
    _, block_size, kv_heads, _ = k_pool.shape
    if heads % kv_heads:
        raise ValueError(f"{heads} query heads cannot share {kv_heads} KV heads evenly")
    queries = meta.query_start_loc.diff()
    seqs = torch.arange(len(queries), device=q.device).repeat_interleave(queries)
    after = meta.query_start_loc[1:][seqs] - torch.arange(tokens, device=q.device) - 1
    contexts = meta.seq_lens[seqs] - after  # keys up to the token's own
    rows, wide = (max(16, 1 << (n - 1).bit_length()) for n in (heads // kv_heads, dim))
    behind = rows * dim + wide  # numbers that are nobody's
    out = q.new_full((q.numel() + behind,), torch.nan)
    room = int(meta.seq_lens.max()) + tile  # behind the tables: there a wrong look-up finds block 0
    tables = torch.nn.functional.pad(meta.block_tables.int(), (0, room, 0, tokens))
    kernel[(tokens, kv_heads)](
        q.contiguous(), k_pool, v_pool, out, tables, seqs.int(), contexts.int(),
        tables.stride(0), dim**-0.5,
        HEADS=heads, KV_HEADS=kv_heads, HEAD_DIM=dim, BLOCK_SIZE=block_size,
        ROWS=rows, DIM=wide, TILE=tile,
    )  # fmt: skip
    if not out[q.numel() :].isnan().all():
        raise IndexError("the kernel has written behind the last number of out")
    return out[: q.numel()].view(q.shape)


# %% [markdown]
# What the program gets:
#
# - `q`: pointer to the queries, `[tokens, HEADS, HEAD_DIM]`. `out`: the same for the result.
# - `k_pool`, `v_pool`: pointers to the pools, `[blocks, BLOCK_SIZE, KV_HEADS, HEAD_DIM]`.
# - `block_tables`: pointer to int32 `[sequences, table_width]`. `seqs` and `contexts`: pointers to
#   int32 `[tokens]`: whose row of the tables a token takes, and how many keys it reads.
# - `scale`: 1 / sqrt(HEAD_DIM).
# - `ROWS` and `DIM`: the query heads of a group, and HEAD_DIM, rounded up to powers of two of at
#   least 16. `TILE`: keys to read at once, a multiple of 16.
#
# What counts:
#
# - A pool may have more than 2 to the 31 numbers; the tables are int32.
# - Slots that nobody wrote to may hold NaN, entries of a table behind the last key mean nothing,
#   and behind HEAD_DIM begins another head. Read none of it, and write none of it.
# - A token with context 0 reads zeros.
# - Keep maximum, sum and mixture in float32. `tl.dot(..., input_precision="ieee")` multiplies
#   float32 as float32; without it a GPU rounds to some three digits first. Both sides of a `tl.dot`
#   must have one dtype, and `x.to(y.dtype)` converts.
# - In the interpreter `tl.full` is quicker than `tl.zeros`.
#
# An exception inside the kernel is told with its line in your cell. Do not change the launcher. It
# asks for more memory than the result needs, and raises an IndexError if you have written behind
# its end. An address that is far off ends the whole process: save the notebook before you run the
# check, or run `minipaged check 11.3` in a terminal, which lives on and says so.

# %% exercise="11.3"
import triton
import triton.language as tl

TILE = 64


@triton.jit
def decode_kernel(
    q, k_pool, v_pool, out, block_tables, seqs, contexts, table_width, scale,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_SIZE: tl.constexpr,
    ROWS: tl.constexpr, DIM: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Program (token, KV head): what the query heads of this KV head read for this token."""
    ### BEGIN SOLUTION
    token, kv_head = tl.program_id(0), tl.program_id(1)
    table = block_tables + tl.load(seqs + token) * table_width
    context = tl.load(contexts + token)
    rows, dims = tl.arange(0, ROWS), tl.arange(0, DIM)
    group = HEADS // KV_HEADS
    real = (rows < group)[:, None] & (dims < HEAD_DIM)[None, :]
    at = (token * HEADS + kv_head * group + rows)[:, None] * HEAD_DIM + dims[None, :]
    queries = tl.load(q + at, mask=real, other=0.0)
    top = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.full([ROWS], 0.0, tl.float32)
    mixed = tl.full([ROWS, DIM], 0.0, tl.float32)
    for start in range(0, context, TILE):
        keys = start + tl.arange(0, TILE)
        seen = keys < context
        blocks = tl.load(table + keys // BLOCK_SIZE, mask=seen, other=0).to(tl.int64)
        slots = blocks * BLOCK_SIZE + keys % BLOCK_SIZE
        where = (slots * KV_HEADS + kv_head)[:, None] * HEAD_DIM + dims[None, :]
        written = seen[:, None] & (dims < HEAD_DIM)[None, :]
        k = tl.load(k_pool + where, mask=written, other=0.0)
        v = tl.load(v_pool + where, mask=written, other=0.0)
        scores = tl.dot(queries, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(seen[None, :], scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp(scores - higher[:, None])
        shrink = tl.exp(top - higher)
        total = total * shrink + tl.sum(weights, 1)
        added = tl.dot(weights.to(v.dtype), v, input_precision="ieee")
        mixed = mixed * shrink[:, None] + added
        top = higher
    divisor = tl.where(total > 0, total, 1.0)
    tl.store(out + at, mixed / divisor[:, None], mask=real)
    ### END SOLUTION


def paged_decode(q, k_pool, v_pool, meta):
    """What all queries [tokens, heads, head_dim] of a step read; the engine calls this."""
    return launch(decode_kernel, q, k_pool, v_pool, meta, TILE)


# %% check="11.3"
from minipaged.course.check import check

check("11.3", paged_decode)

# %% [markdown]
# ## 11.4 Check yourself
#
# Compute with pencil and paper first; then you may let Python do it. Llama-3-8B has 32 query heads,
# 8 KV heads and head_dim 128, and its numbers have 2 bytes.
#
# - **a** Llama-3-8B, blocks of 16, NHD, table [12, 3, 40]. At which number of the K pool is number
#   5 of head 2 of token 20? (A number.)
# - **b** The same in the layout packed by x = 8. (A number.)
# - **c** Llama-3-8B, blocks of 16. At which number of the K pool does block 196,608 begin,
#   according to a kernel that multiplies in 32 bits? (A number.)
# - **d** How many bytes of K and V are loaded in one layer for a context of 1,000 tokens, with one
#   program for each query head; with one for each KV head? (A list of two numbers.)
# - **e** How many rows has the tile of queries for groups of 3, of 8 and of 24 query heads? (A list
#   of three numbers.)
# - **f** Llama-3-8B, blocks of 8, K packed. Of the 512 bytes of one instruction how many lie side
#   by side, how many lines of 128 bytes does it touch, and how many bytes has the tile of K of one
#   block and head? (A list of three numbers. A block begins at a line's beginning.)
# - **g** Each request has 40 tokens, blocks are of 128. What share of the slots is empty, in per
#   cent? (A number.)
# - **h** head_dim is 80. A kernel's results are right in the interpreter, every time. On a GPU some
#   heads are wrong at times, in their first numbers, another one on each run. Where is a mask
#   missing? `"queries"`: where they are loaded. `"keys"`: where they are loaded. `"scores"`: where
#   they become weights. `"out"`: where the result is stored. (One of the four words.)


# %% exercise="11.4"
def answers() -> dict[str, object]:
    """The answer to each question, by its letter."""
    ### BEGIN SOLUTION
    slot = 3 * 16 + 20 % 16
    return {
        "a": (slot * 8 + 2) * 128 + 5,
        "b": ((3 * 8 + 2) * 16 * 16 + 4) * 8 + 5,
        "c": 196_608 * 16 * 8 * 128 - 2**32,
        "d": [1000 * 2 * 32 * 128 * 2, 1000 * 2 * 8 * 128 * 2],
        "e": [16, 16, 32],
        "f": [8 * 16, 4, 8 * 128 * 2],
        "g": 100 * (128 - 40) / 128,
        "h": "out",
    }
    ### END SOLUTION


# %% check="11.4"
from minipaged.course.check import check

check("11.4", answers)

# %% [markdown]
# ## Run it: the tutor on your kernel
#
# Run these cells once the checks have passed. The tutor has 5 layers and 2 KV heads, and the
# question makes a prompt of 86 tokens. How many programs run before its first word is there?
#
# 86 · 2 · 5 = 860, and 10 more for each further token. In the interpreter that takes seconds, so it
# may write 10 tokens only. Your kernel's numbers are compared with the reference's.

# %%
from dataclasses import replace

import torch

from minipaged import LLM, SamplingParams
from minipaged.components import Components
from minipaged.kernels import reference

torch.set_num_threads(1)
few = SamplingParams(max_tokens=10)
gaps, programs = [], 0


def compared(q, k_pool, v_pool, meta):
    """Your kernel; how far it is from the reference, and how many programs it took."""
    global programs
    yours = paged_decode(q, k_pool, v_pool, meta)
    gaps.append((yours - reference.paged_attention(q, k_pool, v_pool, meta)).abs().max().item())
    programs += q.shape[0] * k_pool.shape[2]
    return yours


llm = LLM("tutor", device="cpu", components=replace(Components(), attention=compared))
(answer,) = llm.generate(["What is a slot?"], few)
llm.engine.check()  # raises if a block, refcount or slot is not as it must be
(right,) = LLM("tutor", device="cpu").generate(["What is a slot?"], few)
print(answer.text)
print("same text as the reference:", answer.text == right.text)
print("a difference above 0.0001: ", max(gaps) > 1e-4)
print("programs:", programs)

# %% [markdown]
# `minipaged mine` does the same in a turn of its own, behind the other parts.
#
# Beside it the engine's own kernel, on five requests of which each decodes one token, with a group
# of 3 and blocks of 12. It takes its tiles from a table of configurations and computes exponentials
# to base 2, so the last bits differ.

# %%
from minipaged.kernels import triton_attention
from minipaged.kernels.meta import AttentionMeta

torch.manual_seed(11)
lengths = torch.tensor([1, 12, 13, 40, 97])
q = torch.randn(5, 6, 64)
k_pool, v_pool = torch.randn(2, 50, 12, 2, 64)
meta = AttentionMeta(torch.arange(6), lengths, torch.randperm(50)[:45].view(5, 9))
yours = paged_decode(q, k_pool, v_pool, meta)
theirs, _ = triton_attention.paged_decode(q, k_pool, v_pool, meta)
print("a difference above 0.00001:", (yours - theirs).abs().max().item() > 1e-5)

# %% [markdown]
# ### On a GPU
#
# If the computer has a GPU, the next cell compiles your kernel for it in a process of its own and
# runs the visible cases there, except the one with the far block. It takes about a minute, as every
# shape is compiled. Without a GPU it says so. In the terminal it is `minipaged check 11.3 --gpu`.

# %% tags=["nbval-ignore-output"]
from minipaged.course.native import check_on_gpu

check_on_gpu("11.3", paged_decode)

# %% [markdown]
# ## An open question
#
# Two colleagues want to change the block size from 16. One says: "128. The kernel reads long runs,
# and the tables are short." The other: "1. Not a slot is wasted, and every prefix is shared to the
# last token." A third asks what the model is, because a 13B model needs blocks of 32. What is right
# in each, what would change in this course's kernel, in the pool and in the caches, and what would
# you measure before you decide? A few sentences for each.
#
# There are no points for this one. Write your answer into the next cell; `minipaged solution 11`
# then shows the model answer.

# %% [markdown] open=true
# ### BEGIN SOLUTION
# **128.** Longer runs help only a kernel whose instructions find their bytes side by side within a
# block: packed, a block of 16 gives 256 bytes, one of 128 the whole 512. With whole rows, as in
# this lesson, an instruction finds the same 256 bytes in blocks of every size. The table shrinks
# from 4 bytes for 16 tokens to 4 for 128, beside 65,536 bytes of K and V for the 16 in each layer:
# nothing that anybody would notice. The price is 63.5 empty slots a request on average in place of
# 7.5. For answers of 20 tokens that is 84 % of the memory, so fewer requests fit, and it is the
# number of requests that run together which makes an engine fast. Prefix hits and copy-on-write
# come in steps of 128 tokens.
#
# **1.** Nothing is wasted, and a prefix is shared to the last token. The kernel does not care much,
# if each key looks up its own block: a tile of 64 keys does 64 look-ups in place of 4, side by side
# in the table. A kernel that takes one block a turn would do 64 turns. The table has 4 bytes a
# token, beside 4,096 a layer. What grows is the work of the engine: 16 times as many blocks to hand
# out, to count, to hash and to free, in Python, in every step.
#
# **The model's size.** It does not enter. A larger model has more bytes a token, and a slot that
# stays empty costs more; the share of empty slots is the same. The lengths of the requests decide.
#
# **To measure.** With requests as they really come: the share of empty slots, the rate of prefix
# hits, how many requests run together, and the time that the scheduler takes for a step, for blocks
# of 1, 8, 16, 32 and 128. And the kernel alone on the card that will run it, for the contexts that
# occur. Tokens a second of the whole engine decide, not one of these figures.
# ### END SOLUTION
