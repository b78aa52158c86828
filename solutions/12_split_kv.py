# %% [markdown]
# # Exercises 12 · Split-KV and the roofline
#
# A kernel that merges, a cost model, a kernel to mend, and eight questions. Lesson 12
# (`lessons/12_split_kv.ipynb`) leads up to them. At the end of this notebook the tutor writes
# through your merge, and your cost model counts a run.

# %%
import os

from minipaged.course.needs import require_triton

os.environ["TRITON_INTERPRET"] = "1"  # run kernels as Python; set before triton is imported
require_triton()

# %% [markdown]
# ## 12.1 Merge the pieces
#
# The keys of a token were read in pieces. Each piece left what it has read for each query head, and
# its LSE. Write the body of `merge_kernel`: program (h, t) merges the pieces of query head h of
# token t; h is its number along axis 0, t along axis 1. All tensors are contiguous float32; the
# kernel gets pointers to their first numbers.
#
# - `parts` `[tokens, pieces, heads, HEAD_DIM]`: what each piece has read.
# - `part_lse` `[tokens, pieces, heads]`: its LSE. A piece without keys has the LSE -inf, and what
#   stands in its row of `parts` means nothing: it may be NaN.
# - `out` `[tokens, heads, HEAD_DIM]`: the mean of the pieces' rows; each counts with its share of
#   the sum of e to the LSE.
# - `lse` `[tokens, heads]`: the LSE of the whole. LSEs may lie anywhere between -3,000 and 3,000.
# - If no piece has keys: zeros, and the LSE -inf.
# - `num_pieces` is a number of at least 1. `DIM` is HEAD_DIM rounded up to a power of two, as
#   `tl.arange` wants it: mask what lies beyond.
#
# `merge_pieces` is given: it makes room for the results, full of NaN, and starts a program for each
# head and token. The check calls it. Two functions are new: `tl.num_programs(0)` is how many
# programs there are along axis 0, here the number of heads, and `tl.log` is the natural logarithm.
# In the interpreter a scalar that was compared (`x > 0`) works in `tl.where` and in `if`; joined
# with a mask by `&` it does not. Take `tl.exp`, not `math.exp`: the interpreter lets that pass, but
# it cuts the number to a whole one.

# %% exercise="12.1"
import triton
import triton.language as tl


@triton.jit
def merge_kernel(parts, part_lse, out, lse, num_pieces, HEAD_DIM: tl.constexpr, DIM: tl.constexpr):
    """Program (h, t): the pieces of query head h of token t become one."""
    ### BEGIN SOLUTION
    head, token, num_heads = tl.program_id(0), tl.program_id(1), tl.num_programs(0)
    columns = tl.arange(0, DIM)
    inside = columns < HEAD_DIM
    first = token * num_pieces * num_heads + head
    top = float("-inf")
    for piece in range(num_pieces):
        top = tl.maximum(top, tl.load(part_lse + first + piece * num_heads))
    total, mixed = 0.0, tl.full([DIM], 0.0, tl.float32)
    for piece in range(num_pieces):
        at = first + piece * num_heads
        said = tl.load(part_lse + at)
        if said > float("-inf"):
            share = tl.exp(said - top)
            mixed += share * tl.load(parts + at * HEAD_DIM + columns, inside, 0.0)
            total += share
    if total == 0:
        total = 1.0
    target = token * num_heads + head
    tl.store(out + target * HEAD_DIM + columns, mixed / total, mask=inside)
    tl.store(lse + target, top + tl.log(total))
    ### END SOLUTION


def merge_pieces(parts, part_lse):
    """parts [tokens, pieces, heads, head_dim], part_lse [tokens, pieces, heads] -> out, lse."""
    tokens, num_pieces, heads, head_dim = parts.shape
    out = parts.new_full((tokens, heads, head_dim), float("nan"))
    lse = parts.new_full((tokens, heads), float("nan"))
    dim = triton.next_power_of_2(head_dim)
    merge_kernel[(heads, tokens)](parts, part_lse, out, lse, num_pieces, HEAD_DIM=head_dim, DIM=dim)
    return out, lse


# %% check="12.1"
from minipaged.course.check import check

check("12.1", merge_pieces)

# %% [markdown]
# ## 12.2 The cost of a step
#
# Write `step_cost(model, work, card)`. `work` is a list with a pair (queries, context) for each
# sequence of the step: how many tokens it computes, at least 1, and how many keys it has when the
# step is over, those of these tokens included. A decode is (1, context), the whole prompt of 500 is
# (500, 500). `model` and `card` are dicts as below. The result is a dict with four keys.
#
# `"flops"`, two for each multiplication with its addition:
#
# - a token is multiplied with all matrices of all layers: those of the queries and of the output,
#   `hidden` times `heads · head_dim` numbers each; of the keys and of the values, `hidden` times
#   `kv_heads · head_dim` each; and three of the *MLP*, the part of a layer behind attention,
#   `hidden` times `mlp` each;
# - the last token of each sequence is multiplied with one more matrix, `hidden` times `vocab`,
#   which gives a score for each token that could come next;
# - attention: each query meets its own key and those before it, and then their values, in each
#   query head and each layer, `head_dim` multiplications for a key and `head_dim` for a value.
#
# `"bytes"`, a number of the model having `bytes_per_number`:
#
# - all matrices, that of the vocabulary included, once a step, however many tokens share them;
# - keys and values of all layers: for each sequence those of its `context` are read once, and those
#   of its `queries` are written.
#
# `"seconds"`: the time that the card needs at least, if it computes `flops` a second, moves
# `bandwidth` bytes a second, and does both at once. `"bound"`: what takes longer, `"compute"` or
# `"memory"`; if both take equally long, `"memory"`.
#
# A step without work costs 0 in all three, so it is a tie. Norms, the table of embeddings and what
# passes from layer to layer are left out: they are small beside the rest. Plain Python, no torch.

# %% given=true
LLAMA_3_8B = {
    "layers": 32,
    "hidden": 4096,
    "heads": 32,
    "kv_heads": 8,
    "head_dim": 128,
    "mlp": 14_336,
    "vocab": 128_256,
    "bytes_per_number": 2,
}
H100 = {"flops": 989e12, "bandwidth": 3350e9}


# %% exercise="12.2"
def step_cost(model, work, card):
    """FLOPs, bytes, least seconds and what bounds them, of a step with this work."""
    ### BEGIN SOLUTION
    wide, narrow = (model[name] * model["head_dim"] for name in ("heads", "kv_heads"))
    layer = model["hidden"] * (2 * wide + 2 * narrow + 3 * model["mlp"])
    last = model["hidden"] * model["vocab"]
    token_kv = 2 * model["layers"] * narrow
    multiplications = numbers = 0
    if work:
        numbers = model["layers"] * layer + last
    for queries, context in work:
        met = queries * context - queries * (queries - 1) // 2
        multiplications += model["layers"] * (queries * layer + 2 * wide * met) + last
        numbers += token_kv * (context + queries)
    flops, moved = 2 * multiplications, model["bytes_per_number"] * numbers
    computing, moving = flops / card["flops"], moved / card["bandwidth"]
    return {
        "flops": flops,
        "bytes": moved,
        "seconds": max(computing, moving),
        "bound": "compute" if computing > moving else "memory",
    }
    ### END SOLUTION


# %% check="12.2"
from minipaged.course.check import check

check("12.2", step_cost)

# %% [markdown]
# ## 12.3 Mend a kernel
#
# `suspect_kernel` is meant to be the first half of split attention: program (b, h, s) reads piece s
# of sequence b for query head h, through the block table, and stores what it has read and the LSE.
# It has five faults, those of the kernels of claim C12:
#
# - the query does not depend on the sequence;
# - all pieces of a sequence are stored in one place;
# - no maximum is subtracted;
# - what was read is never divided by the sum of the exponentials;
# - nothing is split: each piece reads all keys.
#
# Copy its body into `piece_kernel`, then mend it there. What is not named above is right.
# `split_attention` is given: it runs your kernel, then merges the pieces with torch, and the check
# calls it. With all faults but one mended, the case that is named after that one fails.
#
# - `q` `[sequences, heads, DIM]`: one query each. `k_pool`, `v_pool`
#   `[blocks, BLOCK_SIZE, KV heads, DIM]`; query head h reads KV head h // GROUP.
# - `block_tables` `[sequences, table_width]`, `seq_lens` `[sequences]`.
# - `parts` `[sequences, pieces, heads, DIM]` and `part_lse` `[sequences, pieces, heads]`: filled
#   with NaN beforehand. Piece s has the keys from `s * split_size` on, `split_size` of them or what
#   the sequence has left; `split_size` is a multiple of the block size.
# - A piece without keys stores the LSE -inf; what it stores as read is not looked at.
# - BLOCK_SIZE and DIM are powers of two. Slots that no token was written to hold NaN.
#
# ```python
# @triton.jit
# def suspect_kernel(
#     q, k_pool, v_pool, block_tables, seq_lens, parts, part_lse,
#     scale, split_size, table_width,
#     GROUP: tl.constexpr, BLOCK_SIZE: tl.constexpr, DIM: tl.constexpr,
# ):
#     """Program (b, h, s): what query head h of sequence b reads from its piece s. So it says."""
#     seq, head, piece = tl.program_id(0), tl.program_id(1), tl.program_id(2)
#     num_heads, num_pieces = tl.num_programs(1), tl.num_programs(2)
#     dims, within = tl.arange(0, DIM), tl.arange(0, BLOCK_SIZE)
#     query = tl.load(q + head * DIM + dims)
#     length = tl.load(seq_lens + seq)
#     total, mixture = 0.0, tl.full([DIM], 0.0, tl.float32)
#     for first in range(0, length, BLOCK_SIZE):
#         entry = tl.load(block_tables + seq * table_width + first // BLOCK_SIZE)
#         is_key = first + within < length
#         rows = (entry * BLOCK_SIZE + within) * (num_heads // GROUP) + head // GROUP
#         place = rows[:, None] * DIM + dims[None, :]
#         keys = tl.load(k_pool + place, mask=is_key[:, None], other=0.0)
#         values = tl.load(v_pool + place, mask=is_key[:, None], other=0.0)
#         scores = tl.sum(keys * query[None, :], 1) * scale
#         weights = tl.where(is_key, tl.exp(scores), 0.0)
#         total += tl.sum(weights, 0)
#         mixture += tl.sum(weights[:, None] * values, 0)
#     has_keys = total > 0
#     said = tl.where(has_keys, tl.log(tl.where(has_keys, total, 1.0)), float("-inf"))
#     row = seq * num_heads + head
#     tl.store(parts + row * DIM + dims, mixture)
#     tl.store(part_lse + row, said)
# ```

# %% exercise="12.3"
import torch
import triton
import triton.language as tl


@triton.jit
def piece_kernel(
    q, k_pool, v_pool, block_tables, seq_lens, parts, part_lse,
    scale, split_size, table_width,
    GROUP: tl.constexpr, BLOCK_SIZE: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    """Program (b, h, s): what query head h of sequence b reads from its piece s."""
    ### BEGIN SOLUTION
    b, h, s = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    heads, pieces = tl.num_programs(1), tl.num_programs(2)
    d, slots = tl.arange(0, DIM), tl.arange(0, BLOCK_SIZE)
    mine = tl.load(q + (b * heads + h) * DIM + d)
    end = tl.minimum((s + 1) * split_size, tl.load(seq_lens + b))
    top, count, mixed = float("-inf"), 0.0, tl.full([DIM], 0.0, tl.float32)
    for start in range(s * split_size, end, BLOCK_SIZE):
        block = tl.load(block_tables + b * table_width + start // BLOCK_SIZE)
        seen = start + slots < end
        where = (block * BLOCK_SIZE + slots) * (heads // GROUP) + h // GROUP
        numbers = where[:, None] * DIM + d[None, :]
        k = tl.load(k_pool + numbers, seen[:, None], 0.0)
        v = tl.load(v_pool + numbers, seen[:, None], 0.0)
        met = tl.where(seen, tl.sum(k * mine[None, :], 1) * scale, float("-inf"))
        higher = tl.maximum(top, tl.max(met))
        shrink, exps = tl.exp(top - higher), tl.exp(met - higher)
        count = count * shrink + tl.sum(exps)
        mixed = mixed * shrink + tl.sum(exps[:, None] * v, 0)
        top = higher
    target = (b * pieces + s) * heads + h
    tl.store(parts + target * DIM + d, mixed / count)
    tl.store(part_lse + target, top + tl.log(count))
    ### END SOLUTION


def split_attention(q, k_pool, v_pool, block_tables, seq_lens, split_size):
    """What each query reads [sequences, heads, DIM], and its LSE [sequences, heads]."""
    sequences, heads, dim = q.shape
    block_size, kv_heads = k_pool.shape[1:3]
    pieces = -(-int(seq_lens.max()) // split_size)
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


# %% check="12.3"
from minipaged.course.check import check

check("12.3", split_attention)

# %% [markdown]
# ## 12.4 Questions
#
# Answer on paper first. Then fill in the dict.
#
# - **a.** Three pieces have read 2, 6 and 7, and their LSEs are ln 3, 0 and -inf. What is the
#   output of all together?
# - **b.** A batch of 4 sequences, 8 KV heads, a card of 132 multiprocessors. What is the smallest
#   number of pieces a sequence with which there are at least two programs for each multiprocessor?
# - **c.** One token, 32 query heads of head_dim 128, 8 pieces, all in float32. How many KiB do the
#   pieces write and the merge read, together, in one layer? (A KiB has 1,024 bytes.)
# - **d.** An L40S computes 362 TFLOP/s and moves 864 GB/s. Count the weights alone, two bytes each.
#   From how many sequences on is a decode no longer bound by memory?
# - **e.** An H100: 989 TFLOP/s, 3,350 GB/s. A decode of 64 sequences, the weights alone. At most
#   how many per cent of the peak FLOP/s does it reach? One decimal.
# - **f.** Llama-3-8B: 32 query heads, 8 KV heads, head_dim 128, two bytes a number. How many FLOP
#   a byte has attention by itself (queries with keys, weights with values), with one sequence and
#   with 64? A list of two ints.
# - **g.** Which choice of pieces leaves every bit of a row as it is, whatever its neighbours in the
#   batch are? `"by the batch"`: few sequences, many pieces. `"fixed number"`: the longest sequence
#   is cut into 8. `"fixed size"`: 256 keys each. `"in float32"`: any pieces, stored in float32.
# - **h.** A kernel has only the fault that nothing is split: each of 4 pieces reads all keys. The
#   output is right. By how much is the LSE too high? Three decimals.


# %% exercise="12.4"
def answers():
    """Your answers, by letter: a list for f, a text for g, numbers for the others."""
    ### BEGIN SOLUTION
    return {
        "a": 3,
        "b": 9,
        "c": 258,
        "d": 419,
        "e": 21.7,
        "f": [4, 4],
        "g": "fixed size",
        "h": 1.386,
    }
    ### END SOLUTION


# %% check="12.4"
from minipaged.course.check import check

check("12.4", answers)

# %% [markdown]
# ## Run it: the tutor on your merge
#
# Run these cells once the checks have passed. `Components.attention` reads the pool in every
# layer. Here the engine's own decode kernel reads it in pieces of 32 keys, and your kernel merges
# them. A step with a chunk of a prompt takes the engine's prefill kernel, which does not split.
# The tutor is a byte-level model: a token is a character. A step takes a while, as every program
# is plain Python.

# %%
from dataclasses import replace

from minipaged import LLM, SamplingParams
from minipaged.components import Components
from minipaged.kernels.configs import decode_config, padded
from minipaged.kernels.triton_attention import paged_prefill
from minipaged.kernels.triton_decode import decode_kernel
from minipaged.kernels.triton_launch import prepare

torch.set_num_threads(1)
merged = []


def in_pieces(q, k_pool, v_pool, meta, split_size=32):
    """Outputs and LSEs of all pieces: the decode kernel, a program a piece."""
    launch = prepare(q, k_pool, v_pool, decode_config)
    sequences, table_width = meta.block_tables.shape
    pieces = -(-int(meta.seq_lens.max()) // split_size)
    parts = torch.full((len(q), pieces, *q.shape[1:]), torch.nan)
    part_lse = torch.full((len(q), pieces, q.shape[1]), torch.nan)
    decode_kernel[(sequences, launch.shape.kv_heads, pieces)](
        launch.q, k_pool, v_pool, meta.block_tables, meta.seq_lens, meta.query_start_loc,
        parts, part_lse, launch.scale, split_size, table_width,
        ROWS=padded(launch.group), **launch.constants, **launch.options,
    )  # fmt: skip
    return parts, part_lse


def attention(q, k_pool, v_pool, meta):
    """Decodes by pieces and your merge, chunks by the prefill kernel."""
    if int(meta.query_start_loc.diff().max()) > 1:
        return paged_prefill(q, k_pool, v_pool, meta)[0]
    parts, part_lse = in_pieces(q, k_pool, v_pool, meta)
    merged.append(tuple(part_lse.shape))
    return merge_pieces(parts, part_lse)[0]


question, few = ["What is EOS?"], SamplingParams(max_tokens=6)


def ask(components):
    """The beginning of the tutor's answer."""
    llm = LLM("tutor", device="cpu", components=components)
    answers = llm.generate(question, few)
    llm.engine.check()  # raises if a block, refcount or slot is not as it must be
    return answers[0].text


text = ask(replace(Components(), attention=attention))
print(text)
print("same text as the reference:", text == ask(None))
print("merges:", len(merged), " [tokens, pieces, heads] of the last:", list(merged[-1]))

# %% [markdown]
# ### At most so many tokens
#
# And your cost model: 64 sequences of Llama-3-8B with 2,048 keys each. How many tokens a second
# can a card write at most, and does it hold what the step reads? These are limits of the data
# sheets, not times that anybody measured.

# %%
cards = {  # FLOP/s, bytes/s, bytes
    "A100-80G": (312e12, 2039e9, 80e9),
    "H100": (989e12, 3350e9, 80e9),
    "H200": (989e12, 4800e9, 141e9),
    "L40S": (362e12, 864e9, 48e9),
    "A10": (125e12, 600e9, 24e9),
    "RTX 4090": (165e12, 1008e9, 24e9),
}
decodes = [(1, 2048)] * 64
for name, (flops, bandwidth, room) in cards.items():
    card = {"flops": flops} | {"bandwidth": bandwidth}
    cost = step_cost(LLAMA_3_8B, decodes, card)
    speed = len(decodes) / cost["seconds"]
    holds = "holds it" if cost["bytes"] < room else "too small"
    print(f"{name:9}{speed:8,.0f} tokens/s at most, bound by {cost['bound']}; {holds}")

# %% [markdown]
# All six are bound by memory, so they rank by bandwidth; the FLOP/s of the data sheet say nothing
# here. 32 GB do not fit into 24: there the batch has to be smaller, which makes each token dearer.
#
# ## An open question
#
# Keys and values lie in blocks, scattered all over the card's memory. Memory likes long reads in a
# row; an address has to be looked up before each block; and the paper on PagedAttention itself
# reports a slower attention kernel. Why do scattered reads win all the same? Use numbers of
# lessons 11 and 12: how long is a row that is read in one go, what does the table cost beside what
# it leads to, and what does the saved memory buy? Take Llama-3-8B with blocks of 16 and contexts
# of 2,048.
#
# There are no points for this one. Write your answer into the next cell; `minipaged solution 12`
# then shows the model answer.

# %% [markdown] open=true
# ### BEGIN SOLUTION
# **The reads are not as scattered as they sound.** What memory hands over is a line of 128 bytes
# or half of it. One token's key of one head is 128 numbers of 2 bytes, 256 bytes in a row: two
# whole lines, none of them used in part. An instruction of a warp loads 16 bytes a thread, 512
# bytes, which is two such rows. A tile of 64 keys is 16 KiB of keys for a head, and as much of
# values, spread over four blocks of 16. Beyond a row of 256 bytes it matters little whether the
# next one lies beside it or elsewhere, as long as many reads are under way at once.
#
# **The table is next to nothing.** A block of 16 tokens has 16 · 4,096 = 65,536 bytes of keys and
# values in a layer, over all heads, and 4 or 8 bytes of table lead to them: one byte in 8,000 to
# 16,000. Each of the 8 KV heads' programs looks the entry up for itself, so it is read 8 times;
# that is still less than one byte in 1,000. What costs more is waiting: an address is known only
# when its entry has come. The kernel looks the next tile's entries up while it computes the
# present one.
#
# **The memory that is saved buys a larger batch.** Reserved in one piece for the longest possible
# answer, a large part of the memory holds nothing (lesson 01); with blocks it is half a block a
# sequence, 8 of 2,048 tokens, 0.4 %. Suppose that this lets 32 sequences run where 8 ran before. A
# step reads 15.0 GB of weights: 1.88 GB for each token with 8, 0.47 GB with 32. The keys and
# values of its context are 0.27 GB a token in both. So a token costs 2.15 GB before and 0.74 GB
# after.
#
# **Now let scattered reads be slow.** Suppose that attention takes a quarter longer, about what
# the paper reports for its own kernel (20 to 26 %). That is like 0.07 GB more a token: 0.81 GB in
# place of 2.15. The detour would have to make attention some six times slower before the larger
# batch stopped paying. (These are limits from bytes, not measured times; they say how large the
# margin is.)
#
# **Where it would not win.** With one short request there is no batch to enlarge and nothing to
# save. With contexts so long that keys and values dwarf the weights, a slower attention costs
# nearly its full share. And with blocks of 1 the table grows sixteenfold and every key needs its
# own look-up, while a tile of 64 keys then needs 64 of them.
# ### END SOLUTION
