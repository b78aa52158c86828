# %% [markdown]
# # 12 · Split-KV and the roofline
#
# **The question.** The decode kernel of lesson 11 has one program for each sequence and KV head.
# What happens when there are few sequences, and long ones? And whatever the number: how fast can a
# step be at all, on a card that you have never touched?
#
# You will cut the keys of a sequence into pieces and merge what the pieces have read. Then you
# count the bytes and the FLOP of a step, and lay them beside six cards. Allow 60 minutes with the
# exercises. The kernels run in Triton's interpreter; you need no GPU.

# %%
import os

from minipaged.course.needs import require_triton

os.environ["TRITON_INTERPRET"] = "1"  # run kernels as Python; set before triton is imported
require_triton()

# %% [markdown]
# ## How many of them work?
#
# An H100 has 132 multiprocessors, and each runs programs on its own (lesson 11). A batch of 2
# sequences arrives, with 16,384 keys each, and the model has 8 KV heads. One program for each
# sequence and KV head: how many multiprocessors have something to do?
#
# 2 · 8 = 16 of 132, that is 12 %. Each of the 16 reads 16,384 keys one tile after another, while
# 116 stand by. The memory could deliver far more than 16 of them ask for.
#
# So cut the keys. If each sequence is read in 16 pieces of 1,024 keys, there are 256 programs, and
# each is done after a sixteenth of the way. That is *split-KV*, or Flash-Decoding. What is left to
# do is known from lesson 04: several readers who each know their part, and one who merges.
#
# ## What a piece hands on
#
# Lesson 04 kept three numbers: the maximum, the sum of the exponentials relative to it, and the
# mixture of the values. Its first block ended with ln 2, 1.5 and 8, its second with ln 4, 1.25 and
# 6. Does a piece have to hand on all three?
#
# Two are enough: the mixture divided by the sum, which is what the piece alone would read, and the
# *LSE*, maximum + ln(sum). From the three of the first block: 8 / 1.5 = 5.333, and ln 2 + ln 1.5 =
# ln 3. From the second: 6 / 1.25 = 4.8 and ln 4 + ln 1.25 = ln 5. Merged, with the weights 3/8 and
# 5/8, they read 5, and the LSE is ln 8.
#
# With n pieces nothing changes. The weight of a piece is e to its LSE, divided by the sum of these
# over all pieces. It is softmax once more, over n LSEs, so the largest of them is subtracted first.
# What do these three pieces read?

# %%
import math

pieces = [(6.0, math.log(2)), (3.0, math.log(5)), (math.nan, -math.inf)]  # (output, LSE)

largest = max(lse for _, lse in pieces)
weights = [math.exp(lse - largest) for _, lse in pieces]
print("relative to the largest:", [round(w, 3) for w in weights], " sum", round(sum(weights), 3))
naive = sum(w * output for w, (output, _) in zip(weights, pieces, strict=True))
print("all pieces:             ", naive / sum(weights))
careful = sum(w * output for w, (output, _) in zip(weights, pieces, strict=True) if w > 0)
print("without the empty piece:", round(careful / sum(weights), 3))
print("LSE of the whole:       ", round(largest + math.log(sum(weights)), 3), "= ln 7")

# %% [markdown]
# (2 · 6 + 5 · 3) / 7 = 3.857. The third piece is *empty*. Where would that come from? All sequences
# are cut into pieces of one size. If one has 16 and its neighbour fits into the first, 15 pieces of
# the neighbour have no key. Their programs say so with an LSE of minus infinity, and what they
# leave as an output is whatever 0 / 0 gives (case 36, flash-attention #2573). And if a sequence has
# no keys at all, all its pieces are empty: then the answer is 0 and minus infinity, and nothing may
# be divided.
#
# **Exercise 12.1** is the kernel that merges. It is the second of two launches: the first writes
# outputs and LSEs of all pieces in float32, the second reads them.
#
# ## How many pieces?
#
# More pieces fill the card, and each piece costs something. What, in bytes? Llama-3-8B has 32
# query heads of 128 numbers. For each query head a piece writes its output and its LSE, 129
# numbers of 4 bytes, and the merge reads them. Take 16 pieces: in one layer that is 16 · 32 · 129
# · 4 · 2 bytes = 516 KiB for a sequence. Its keys and values are 4,096 bytes a token and layer, 64
# MiB for 16,384. So merging adds 0.8 %. And for 512 keys in 16 pieces? The same 516 KiB, beside 2
# MiB: 25 %.
#
# A rule has to know both sides. This course's (`minipaged/kernels/splits.py`) says, with *tile* for
# the keys that a program reads at once, 64 here:
#
# - if sequences times KV heads give 80 % of the multiprocessors a program, nothing is split;
# - else as few pieces as give each multiprocessor two programs, so that one computes while the
#   other waits for memory;
# - but at most 64 pieces, and none shorter than four tiles.
#
# For the 2 sequences above: 264 programs are wanted, there are 16 a piece, so 17 pieces. 256 tiles
# in 17 pieces are 16 tiles each, rounded up, and with 16 tiles it takes 16 pieces. Guess before
# you look: at which batch does splitting end, and is the card full there?

# %%
from minipaged.kernels.splits import choose_split_size, num_splits
from minipaged.viz.plots import lines
from minipaged.viz.widgets import explore


def filled(multiprocessors, context):
    """Pieces of a sequence, and multiprocessors with a program, over the batch size."""
    batches = [1, 2, 3, 4, 6, 8, 10, 12, 13, 14, 16, 20]
    pieces = []
    for batch in batches:
        size = choose_split_size(batch, 8, context, tile=64, num_sms=multiprocessors)
        pieces.append(num_splits(context, size))
    whole = [100 * min(1, 8 * batch / multiprocessors) for batch in batches]
    split = [
        100 * min(1, 8 * batch * n / multiprocessors)
        for batch, n in zip(batches, pieces, strict=True)
    ]
    shown = {"pieces": pieces, "% busy, split": split, "% busy, whole": whole}
    title = f"{multiprocessors} multiprocessors, 8 KV heads, {context:,} keys"
    return lines(batches, shown, title=title, xlabel="sequences")


explore(
    filled,
    start={"multiprocessors": 132, "context": 16_384},
    multiprocessors=[72, 108, 132],
    context=[256, 512, 1024, 4096, 16_384],
)

# %% [markdown]
# From 14 sequences on nothing is split: 112 programs are more than 80 % of 132. At 14 and 16 some
# multiprocessors stand by (85 and 97 % are busy); the rule finds that not worth a merge. With 256
# keys nothing is ever split, however empty the card: a piece would be shorter than four tiles. Such
# a step is over so soon that a second launch may cost more than it saves. Where that limit lies on
# a card is to be measured; the four tiles are a choice.
#
# ## The same question, other bits
#
# A user asks the same question twice, with temperature 0, and gets two answers that differ in one
# word. Once the request ran alone, once with seven others. What has changed for it?
#
# Alone it was cut into pieces, in the batch it was not. Another order of summation is another
# rounding (lesson 04), and where two tokens are all but equally likely, the last bit decides. The
# next cell computes one row twice, alone and as the first of 8 rows, in the interpreter, by the
# rule and with a fixed `split_size`. For the interpreter the rule takes tiles of 32 keys and 8
# multiprocessors.

# %%
import torch

from minipaged.kernels.meta import AttentionMeta
from minipaged.kernels.triton_attention import paged_decode

torch.manual_seed(12)
block_size, keys = 16, 256
pools = torch.randn(2, 8 * keys // block_size, block_size, 1, 16)  # K or V, blocks, slots, 1 head
queries = torch.randn(8, 2, 16)
tables = torch.randperm(8 * keys // block_size).view(8, -1)


def decode(rows, split_size=None):
    """What the first `rows` queries read."""
    lens = torch.full((rows,), keys)
    meta = AttentionMeta(torch.arange(rows + 1), lens, tables[:rows])
    return paged_decode(queries[:rows], *pools, meta, split_size=split_size)[0]


def pieces_by_rule(rows):
    return num_splits(keys, choose_split_size(rows, 1, keys, tile=32, num_sms=8))


for name, size in (("by the batch", None), ("64 keys a piece", 64)):
    alone, among = decode(1, size)[0], decode(8, size)[0]
    gap = (alone - among).abs().max().item()
    cut = [-(-keys // size)] * 2 if size else [pieces_by_rule(1), pieces_by_rule(8)]
    near = "0" if gap == 0 else "below 1e-06" if gap < 1e-6 else "larger"
    print(f"{name:16} pieces {cut}  every bit equal: {torch.equal(alone, among)!s:6} gap {near}")

# %% [markdown]
# With a fixed number of keys in a piece, row 0 is cut in the same places whatever stands beside it,
# and every bit is the same: its result is *batch-invariant* (case 37). A longer neighbour adds only
# empty pieces behind, and our merge adds pieces one after another, so an empty one changes nothing.
# A fixed *number* of pieces would not do: the longest sequence sets their size.
#
# > **A claim, examined once more.** *Paged attention loses not one bit of precision* (claim C18).
# > How it is split changes the rounding, here in the seventh digit behind the point. Both results
# > are equally good; they are not equal.
#
# What it costs: with a few rows a fixed size fills the card less well, with many it makes pieces
# that nobody needs. vLLM has such a mode for those who need it (`VLLM_BATCH_INVARIANT=1`), off by
# default.
#
# ## What a step has to move
#
# Now the other question: how fast can a step be? No clock is needed. A step has to *move* bytes
# and to *compute* FLOP, and for both the card has a rate. It cannot be faster than the slower of
# the two.
#
# Count for Llama-3-8B, one decode of one sequence. Which bytes are read? All weights, once: every
# layer has matrices for queries, keys, values and output, and three for the *MLP*, the part behind
# attention; at the end one more matrix gives a score for each of 128,256 tokens. (The *table of
# embeddings*, half a billion numbers more, is left out: it has a row for each token of the
# vocabulary, and a token reads one row.) And the keys and values of the context; those of the new
# token are written. FLOP: a weight meets each token once, one multiplication and one addition. In
# attention a query head multiplies 128 numbers for each key, and 128 for its value.

# %%
layers, hidden, heads, kv_heads, head_dim, mlp, vocab = 32, 4096, 32, 8, 128, 14_336, 128_256

attention_matrices = 2 * hidden * heads * head_dim + 2 * hidden * kv_heads * head_dim
weights = layers * (attention_matrices + 3 * hidden * mlp) + hidden * vocab
kv_bytes = 2 * layers * kv_heads * head_dim * 2  # of one token, in 16 bit

print(f"weights                     {weights / 1e9:8.2f} billion, {2 * weights / 1e9:.1f} GB")
print(f"keys and values of a token  {kv_bytes:8,} bytes")
print(f"a token meets the weights:  {2 * weights / 1e9:8.2f} GFLOP")
print(f"a query meets a key:        {layers * heads * 2 * head_dim * 2:8,} FLOP in all layers")


def decode_step(batch, context):
    """Bytes and FLOP of a step in which each of `batch` sequences computes one token."""
    moved = 2 * weights + batch * (context + 1) * kv_bytes
    computed = batch * (2 * weights + layers * heads * 4 * head_dim * context)
    return moved, computed


print("\nbatch  context      GB   GFLOP  FLOP a byte")
for batch in (1, 8, 64, 128, 256):
    moved, computed = decode_step(batch, 2048)
    row = f"{batch:5}{2048:9,}{moved / 1e9:8.1f}{computed / 1e9:8,.0f}"
    print(f"{row}{computed / moved:13.1f}")

# %% [markdown]
# The last column is the *arithmetic intensity*: FLOP for each byte moved. With one sequence it is
# about 1: a weight has two bytes, is read, is used for two FLOP, and is gone. With 8 sequences the
# same bytes serve 8. If there were weights alone, the intensity would be the batch size.
#
# But keys and values are not shared. Each sequence brings its own, so the column grows ever more
# slowly: from 128 to 256 it gains little.
#
# ## Six cards
#
# A card computes so many FLOP a second and moves so many bytes a second. The quotient is its
# *balance*: below that intensity the memory sets the pace, above it the processors. (The rates are
# those of vendors' data sheets as secondary sources give them, for 16-bit numbers; the doubled
# ones, for matrices that are half zeros, do not count here. They are limits; no card reaches them.)
#
# Take the weights alone, so that the intensity is the batch size. What share of its FLOP a second
# can each card reach at most? An H100 has a balance of 989 / 3.35 = 295 FLOP a byte (both in 10¹² a
# second); a batch of 64 brings 64, which is 22 %.

# %%
cards = {  # TFLOP/s, GB/s
    "A100-80G": (312, 2039),
    "H100": (989, 3350),
    "H200": (989, 4800),
    "L40S": (362, 864),
    "A10": (125, 600),
    "RTX 4090": (165, 1008),
}
print("                 % of its FLOP/s at most, weights alone")
print("card      FLOP a byte  batch 1    8   64  128  256")
for name, (tera, giga) in cards.items():
    balance = 1000 * tera / giga
    shares = [100 * min(1, batch / balance) for batch in (1, 8, 64, 128, 256)]
    print(f"{name:10}{balance:11.0f}{'':4}", "".join(f"{share:5.0f}" for share in shares))

# %% [markdown]
# > **A claim, recomputed.** *Continuous batching brings decode to 75 to 85 % of the peak FLOP rate
# > at batch 64 to 128* (claim C7). On an H100 it is 22 % at most with 64 sequences, and 128 / 295 =
# > 43 % with 128, if there were weights alone. With 2,048 keys a sequence the intensity of 128 is
# > 41.7, and the limit 14 %. Such a figure can mean the share of the *bandwidth*, or a mix with
# > prefill.
#
# The picture is called a *roofline*. Along both axes equal steps are equal factors: each line of
# the grid is four times the one before. Each card has a slope, where bytes a second decide, and a
# flat roof, where FLOP a second do; the dotted lines stand at the intensities of four batches.
# First guess: what happens to them if the context becomes 8,192? And why do they move when 32 KV
# heads take the place of 8?


# %%
def roofline(context, kv):
    """What each card can compute at most, over the intensity."""
    points = [2.0**k for k in range(-1, 11)]
    shown = {
        name: [min(tera, giga * x / 1000) for x in points] for name, (tera, giga) in cards.items()
    }
    marks = {}
    for batch in (1, 8, 64, 256):
        computed = decode_step(batch, context)[1]
        # only what is kept grows with `kv`; the weights stay those of 8 KV heads
        moved = 2 * weights + batch * (context + 1) * kv_bytes * kv / kv_heads
        marks[f"batch {batch}"] = computed / moved
    title = f"TFLOP/s at most; {context:,} keys a sequence, {kv} KV heads"
    return lines(
        points, shown, title=title, xlabel="FLOP a byte", log_x=True, log_y=True, marks=marks
    )


explore(
    roofline,
    start={"context": 512, "kv": 8},
    context=[0, 512, 2048, 8192],
    kv=[8, 32],
)

# %% [markdown]
# With long contexts the lines crowd together, far left of every card's bend. The longer the
# context, the nearer all of them come to the intensity of attention itself. Work that out: a key
# and its value cost 32 · 4 · 128 = 16,384 FLOP a layer and are 4,096 bytes. That is 4, whatever the
# batch is. In general, in 16 bit, it is the size of the group: as many FLOP a byte as there are
# query heads to a KV head. So a larger batch makes better use of the weights and never of the keys;
# grouped queries do. (That is why they came.)
#
# *And prefill?* A prompt of 2,048 brings 2,048 tokens that share the weights, and one reading of
# its keys. Its intensity is above 1,900: on every card of the table the processors decide. That is
# why a chunk of a prompt beside decodes (lesson 07) is nearly free for a while: the decodes wait
# for memory, and the processors have time.
#
# *Does splitting raise the intensity?* No. It moves the same bytes, and a few more. It lets a card
# come near its slope when there are too few programs to keep the memory busy.
#
# **Exercise 12.2** is the count for any step, decodes and chunks mixed, with the time that a card
# needs at least.
#
# ## A run, step by step
#
# Here is an engine with a budget of 512 tokens a step, in blocks of 64. Eight requests arrive at
# once. The picture shows step 8, in which the last chunk of a prompt runs beside decodes.

# %%
from minipaged.simulate import simulate
from minipaged.viz.widgets import step_through

work = [(700, 40), (300, 30), (1200, 20), (150, 60), (500, 50), (900, 10), (60, 60), (400, 30)]
trace = simulate(work, max_num_batched_tokens=512, block_size=64)
step_through(trace, step=8)

# %% [markdown]
# What does each step cost? Your `step_cost` counts it if you have written it, else the solution's.
# In which steps will an H100 be bound by computing?

# %%
from minipaged.course.mine import mine

step_cost = mine("12.2")
model = {
    "layers": layers,
    "hidden": hidden,
    "heads": heads,
    "kv_heads": kv_heads,
    "head_dim": head_dim,
    "mlp": mlp,
    "vocab": vocab,
    "bytes_per_number": 2,
}
h100 = {"flops": 989e12, "bandwidth": 3350e9}

print(" step    tokens      GB  GFLOP  FLOP a byte  at least ms  bound by")
rows = []
for record in trace.steps:
    pairs = [(one.num_tokens, one.start_position + one.num_tokens) for one in record.work]
    rows.append((sum(queries for queries, _ in pairs), step_cost(model, pairs, h100)))
for number in (0, 4, 8, 9, 20, 40, len(rows) - 1):
    tokens, cost = rows[number]
    row = f"{number:5}{tokens:10}{cost['bytes'] / 1e9:8.2f}{cost['flops'] / 1e9:7,.0f}"
    row += f"{cost['flops'] / cost['bytes']:13.1f}{1e3 * cost['seconds']:13.2f}"
    print(f"{row}  {cost['bound']}")
total = sum(cost["seconds"] for _, cost in rows)
weights_read = len(rows) * 2 * weights / 3350e9
print(
    f"{len(rows)} steps, at least {1e3 * total:.0f} ms; weights alone {1e3 * weights_read:.0f} ms"
)

# %% [markdown]
# Full budgets are bound by computing, steps of decodes by memory. So is step 8: the 134 tokens of a
# prompt in it cost next to nothing, as step 9 shows, which has none. Reading the weights 67 times
# would by itself take 300 ms, where all takes 327; 58 times they are read for eight tokens or fewer.
# A *real* step takes longer: kernels have to be launched, small matrices fill no card, and no rate
# is reached in full. What the count is good for: a measured time far above it says that something
# can be mended, and a promise below it is wrong.
#
# ## One kernel to mend
#
# > **A claim, examined once more.** *A printed kernel is paged attention in its second version,
# > split over the sequence* (claim C12). You have seen on paper what is wrong with it (lesson 04).
# > **Exercise 12.3** has a kernel in Triton with its faults: the query lacks the sequence, all
# > pieces share one place, no maximum, no division, and nothing is split. Each has a small input
# > on which it alone shows. The last one is the most interesting: it changes no output at all.
#
# ## Where this is in other engines
#
# - **vLLM**: `vllm/v1/attention/ops/triton_unified_attention.py` has a kernel for *segments* of the
#   keys, and `reduce_segments`, which merges them. `merge_attn_states.py` beside it merges two.
# - **FlashAttention**: `num_splits_heuristic` in `hopper/heuristics.h` is a rule for the number of
#   splits; the 80 % above is from there.
# - **SGLang**: `_fwd_kernel_stage1` and `_fwd_kernel_stage2` in
#   `python/sglang/srt/layers/attention/triton_ops/decode_attention.py`: pieces, then merge.
# - **nano-vllm**: leaves it to the FlashAttention library.
# - **Here**: `minipaged/kernels/triton_decode.py`, `triton_merge.py` and `splits.py`.
#
# ## Check yourself
#
# **Exercise 12.4** asks eight questions: a merge, pieces, bytes, batches and balances. The open
# question: keys and values lie scattered over the whole memory. Why do such reads still win?
#
# ## Next
#
# A step of decodes has processors to spare: at batch 8 an H100 could compute some forty times as
# much for the same bytes. Lesson 13 uses that: it guesses several tokens ahead and lets one step
# check them all.
