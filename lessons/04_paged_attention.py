# %% [markdown]
# # 04 · Paged attention by hand
#
# **The question.** The keys and values of a request lie in blocks all over the pool. In lesson 03
# attention had them copied together first, in every layer, for every token. Can it read them where
# they lie, a block at a time, without ever seeing all of them at once?
#
# It can, if you know how to correct a sum after the fact. You will do it on four numbers with
# pencil and paper, then over a block table in torch, and at the end the tutor reads through your
# attention. Allow 60 minutes with the exercises.

# %% [markdown]
# ## Attention on four numbers
#
# In one sentence: the new token's *query* is compared with every key, which gives a *score* each;
# the scores become *weights* that add up to 1; what comes out is the mean of the values with these
# weights.
#
# A score becomes a weight in two steps: take e to the score, its *exponential*, then divide by the
# sum of all of them. That is *softmax*. Four tokens have the scores ln 1, ln 2, ln 4 and ln 1 (the
# natural logarithm, `math.log` in Python; e to the ln 4 is 4) and the values 8, 4, 2 and 16. What
# are the weights, and what does the query read?

# %%
import math

scores = [math.log(1), math.log(2), math.log(4), math.log(1)]
values = [8, 4, 2, 16]

exps = [math.exp(s) for s in scores]
weights = [e / sum(exps) for e in exps]
print("exponentials", [round(e, 3) for e in exps], " sum", round(sum(exps), 3))
print("weights     ", [round(w, 3) for w in weights])
print("read        ", round(sum(w * v for w, v in zip(weights, values, strict=True)), 3))

# %% [markdown]
# The exponentials are 1, 2, 4 and 1, their sum is 8, and (1 · 8 + 2 · 4 + 4 · 2 + 1 · 16) / 8
# is 5.
#
# Where do scores come from? Query and key are rows of `head_dim` numbers each. A score is the sum
# of their products, number by number, divided by the square root of head_dim:
#
#     score = q · k / sqrt(head_dim)
#
# Without the division scores would grow with head_dim, and nearly all the weight would go to one
# key.
#
# ## Scores of 1000
#
# Add 1000 to each of the four scores. What should the weights be now? And what will Python say?

# %%
high = [1000 + s for s in scores]
try:
    print([math.exp(s) for s in high])
except OverflowError as error:
    print("OverflowError:", error)

top = max(high)
exps = [math.exp(s - top) for s in high]
print("above the highest score:", [round(s - top, 3) for s in high])
print("exponentials            ", [round(e, 3) for e in exps], " sum", round(sum(exps), 3))
print("weights                 ", [round(e / sum(exps), 3) for e in exps])

# %% [markdown]
# The weights must stay: every exponential gets the same factor, e to the 1000, above and below the
# fraction's bar. But no number in the machine holds that factor. A Python float ends at e to the
# 709, a float32 at e to the 88. So subtract the highest score from all of them first. That divides
# both sides of the bar by the same factor, and no exponential is above 1.
#
# *And if one is so small that it becomes 0?* Then its weight is 0. In a float32 it should have been
# less than 10 to the -44, and beside a sum of at least 1 nobody can see the difference. *What about
# a key that must not be read?* Give it the score minus infinity: e to the minus infinity is 0.
#
# **Exercise 04.1** (`exercises/04_paged_attention.ipynb`) is this softmax, with the odd cases: what
# if no key may be read at all?
#
# ## Block by block
#
# Now put the four tokens into two blocks of two. Whoever reads the first block does not know the
# highest score of the second yet. What to subtract? The highest *so far*, and correct it when a
# higher one turns up. Three numbers are kept:
#
# - the running *maximum*,
# - the running *sum* of the exponentials, relative to that maximum,
# - the running *mixture*: the values times their exponentials, added up, not divided yet.
#
# On paper, before you look below. First block, scores ln 1 and ln 2: the maximum is ln 2, the
# exponentials relative to it are 1/2 and 1, the sum is 1.5, the mixture 1/2 · 8 + 1 · 4 = 8. Now
# the second block, ln 4 and ln 1. The maximum becomes ln 4. What has been counted relative to ln 2
# is twice too much now. So what are sum and mixture?


# %%
def online(blocks):
    """The running maximum, sum and mixture after each block of (score, value) pairs."""
    top, total, mixture = -math.inf, 0.0, 0.0
    for block in blocks:
        higher = max(top, *(score for score, _ in block))
        factor = math.exp(top - higher)  # what was counted so far shrinks by this
        top, total, mixture = higher, total * factor, mixture * factor
        for score, value in block:
            total += math.exp(score - top)
            mixture += math.exp(score - top) * value
        yield top, factor, total, mixture


pairs = list(zip(scores, values, strict=True))
print("block   maximum          factor   sum    mixture   mixture / sum")
for number, (top, factor, total, mixture) in enumerate(online([pairs[:2], pairs[2:]])):
    maximum = f"{top:.3f} (ln {math.exp(top):.0f})"
    print(
        f"{number:5}   {maximum:15} {factor:6.2f} {total:6.2f} {mixture:9.2f} {mixture / total:12.3f}"
    )

# %% [markdown]
# The factor is e to the (old maximum - new maximum), here 2/4. The sum is 1.5 · 1/2 + 1 + 1/4 = 2,
# the mixture 8 · 1/2 + 1 · 2 + 1/4 · 16 = 10, and 10 / 2 = 5, as before. This is *online softmax*:
# "online" because it takes its input as it comes. The keys of a block can be forgotten as soon as
# it is done.
#
# *The first factor is e to the minus infinity. Is that safe?* Yes, it is 0, and it is multiplied
# with 0. *What if the first block has no key that may be read?* Then the new maximum is minus
# infinity as well, and minus infinity less minus infinity is NaN. Skip such a block.
#
# Watch it on 48 tokens. Each point is the state after a block; mixture / sum is what the query would
# read if there were no further token. Where the maximum rises, what the sum holds counts for less:
# at 8 and at 12 tokens the sum is lower than before, although four exponentials were added. Try
# blocks of 1, and scores that rise all the time.

# %%
import random

from minipaged.viz.plots import lines
from minipaged.viz.widgets import explore

draw = random.Random(4)
drawn = [(round(draw.gauss(0, 1.5), 2), draw.randrange(10)) for _ in range(48)]
orders = {"as drawn": drawn, "rising": sorted(drawn), "falling": sorted(drawn, reverse=True)}


def running(block_size, scores):
    """Online softmax over 48 tokens, drawn."""
    tokens = orders[scores]
    states = list(online([tokens[i : i + block_size] for i in range(0, 48, block_size)]))
    ends = range(block_size, 49, block_size)
    shown = {
        "maximum": [top for top, _, _, _ in states],
        "sum": [total for _, _, total, _ in states],
        "mixture / sum": [mixture / total for _, _, total, mixture in states],
    }
    title = f"{len(states)} blocks; at the end {states[-1][3] / states[-1][2]:.3f} is read"
    return lines(ends, shown, title=title, xlabel="tokens read")


explore(
    running,
    start={"block_size": 4, "scores": "as drawn"},
    block_size=[1, 2, 4, 8, 16],
    scores=list(orders),
)

# %% [markdown]
# Block size and order change the way, not the end. Whether that is true to the last bit comes
# below.
#
# ## Two halves merged
#
# Let two people share the work: one reads the first block, the other the second, and neither knows
# the other's maximum. The first ends with 8 / 1.5 = 5.333, the second has the exponentials 4 and 1
# and reads (4 · 2 + 1 · 16) / 5 = 4.8. The plain mean of both is 5.067, not 5. What else do they
# have to tell?
#
# How much each of them weighs: the sum of its exponentials with nothing subtracted, 1 + 2 = 3 and
# 4 + 1 = 5. Then (3 · 5.333 + 5 · 4.8) / 8 is 5. But such a sum overflows like a single exponential.
# So they tell its logarithm, ln 3 and ln 5, which is a number of the size of a score. It is called
# *LSE*, the log of the sum of the exponentials: maximum + ln(sum relative to the maximum).


# %%
def read(block):
    """What a query reads from these pairs alone, and the LSE."""
    top, _, total, mixture = next(online([block]))
    return mixture / total, top + math.log(total)


for name, half in (("first", pairs[:2]), ("second", pairs[2:]), ("both", pairs)):
    output, lse = read(half)
    print(f"{name:6}  output {output:.3f}   LSE {lse:.3f} (ln {math.exp(lse):.0f})")

# %% [markdown]
# To merge is softmax once more, over two LSEs: the weights are 3/8 and 5/8, and the LSE of the
# whole is ln 8. The trap is a half without keys. Its LSE is minus infinity and its output 0 / 0,
# NaN. Its weight is 0, but 0 · NaN is NaN again: such an output must not even be multiplied.
#
# **Exercise 04.2** is `merge`. Online softmax is the special case in which one half is always the
# next block. The general case is what a GPU does with one long request: many processors read a
# part each (lesson 12).
#
# ## Over a block table
#
# Here is an engine at work on five requests, in blocks of 4. The picture shows step 9.

# %%
from minipaged.simulate import simulate
from minipaged.viz.widgets import step_through

work = [(6, 3), (9, 14), (11, 9), (5, 8), (7, 6)]
trace = simulate(work, block_size=4, num_blocks=14, max_num_seqs=3)
step_through(trace, step=9)

# %% [markdown]
# In this step B and D compute one token each, and the whole prompt of E comes in: 7 tokens. B's
# query reads the keys of its 18 tokens, which are in the blocks 2, 3, 4, 9 and 12: five rounds of
# the loop, and in the last one only two slots count.
#
# How many keys does each of E's 7 queries read? A token must not look at those behind it, so the
# first reads 1, its own, and the last reads 7. What about a prompt that is read in two steps? If 5
# tokens are stored when the step is over and 3 of them were computed in it, their queries read 3, 4
# and 5.
#
# All queries of a step come to attention as one tensor, request after request. Which row belongs to
# whom? The engine tells it with two lists: `query_start_loc` has the row at which each request's
# queries begin, and behind them the number of all rows; `seq_lens` has the number of keys of each
# request. Work them out for B, D and E before you run the cell.

# %%
starts, lengths = [0], []
for item in trace.steps[9].work:
    starts.append(starts[-1] + item.num_tokens)
    lengths.append(item.start_position + item.num_tokens)
print("query_start_loc", starts)
print("seq_lens       ", lengths)

# %% [markdown]
# E's queries are rows 2 to 8, and E has 7 keys. These two lists and the block tables are all that an
# attention function is told, beside the queries and the pools themselves.
#
# ## NaN in the tail
#
# A block of 4, one token in it: three slots that nobody wrote to. On a GPU such memory may hold
# anything, NaN included. *Surely the scores of those slots are masked?* Suppose so: minus infinity,
# weight 0. What comes out? (vLLM #936 was this.)

# %%
import torch

weights = torch.tensor([1.0, 0.0, 0.0, 0.0])
block_values = torch.tensor([5.0, torch.nan, torch.nan, torch.nan])
print("weights 1 0 0 0:     ", (weights * block_values).sum().item())
print("only the slot in use:", (weights[:1] * block_values[:1]).sum().item())

# %% [markdown]
# 0 · NaN is NaN, and a sum with a NaN in it is NaN. With one such slot, what the query reads is lost,
# in this layer and in all that follow. So cut the block to its written slots before you compute, the
# values like the keys.
#
# ## Fewer keys than queries
#
# So far there was one head. In Llama-3-8B a layer does all this 32 times side by side, once for
# each query head, but it keeps keys and values for 8 KV heads only: the grouped-query attention of
# lesson 01, *GQA* for short. Four neighbouring query heads form a *group* that reads one KV head.
# Which KV head does query head 21 read?
#
# 21 // 4 = 5. A tempting mistake is 21 % 8, which happens to be 5 as well. And query head 22? By
# the first rule 5, by the second 6. No exception will tell: both are valid heads, so a test needs
# KV heads that differ.
#
# **Exercise 04.3** puts it all together: `attend_one`, for one query over a block table. A given
# loop calls it for every query of a step, and the engine calls that.
#
# ## Equal, or equal to the last bit?
#
# Before paged attention in float32, three numbers in Python. Is (0.1 + 0.2) + 0.3 the same as
# 0.1 + (0.2 + 0.3)?

# %%
print((0.1 + 0.2) + 0.3, "and", 0.1 + (0.2 + 0.3))

# %% [markdown]
# Every sum is rounded, and what is lost depends on the order. The next cell scatters the blocks of
# 1,024 tokens over a pool and reads them by their table: block by block, each merged with those
# before it, in blocks of four sizes and once from the last block to the first; then gathered, as in
# lesson 03. Which results will be equal in every bit to attention on contiguous keys and values? And
# the last line: will blocks that are scattered in another way give the same bits?

# %%
from functools import reduce

torch.manual_seed(0)
head_dim, context = 128, 1024
q, (k, v) = torch.randn(head_dim), torch.randn(2, context, head_dim)


def contiguous(k, v):
    """Attention as one softmax over all keys."""
    return (k @ q / head_dim**0.5).softmax(dim=0) @ v


def part(k, v):
    """Output and LSE of some of the keys; a weight is e to the (score - LSE)."""
    scores = k @ q / head_dim**0.5
    lse = scores.logsumexp(dim=0)
    return (scores - lse).exp() @ v, lse


def joined(one, other):
    """Two parts that both have keys, as one."""
    lse = torch.logaddexp(one[1], other[1])
    return one[0] * (one[1] - lse).exp() + other[0] * (other[1] - lse).exp(), lse


def scattered(size):
    """Pools [K or V, blocks, size, head_dim], twice as large as needed, and the table."""
    needed = context // size
    table = torch.randperm(2 * needed)[:needed]
    pools = torch.full((2, 2 * needed, size, head_dim), torch.nan)
    pools[:, table] = torch.stack((k, v)).view(2, needed, size, head_dim)
    return pools, table


def by_blocks(size, backwards=False):
    """Block after block, in the order of the table or against it."""
    pools, table = scattered(size)
    parts = [part(*pools[:, block]) for block in (table.flip(0) if backwards else table)]
    return reduce(joined, parts)[0]


def gathered(size):
    """All blocks copied together, then one softmax over all keys."""
    pools, table = scattered(size)
    return contiguous(*pools[:, table].view(2, context, head_dim))


def compare(name, result, right):
    gap = (result - right).abs().max().item()
    size = f"largest difference below {10 ** math.ceil(math.log10(gap)):.0e}" if gap else ""
    print(f"{name:24} every bit equal: {torch.equal(result, right)!s:6} {size}".rstrip())


right = contiguous(k, v)
for size in (1, 16, 64, 512):
    compare(f"blocks of {size}", by_blocks(size), right)
compare("blocks of 16, backwards", by_blocks(16, backwards=True), right)
compare("gathered", gathered(16), right)
print()
compare("blocks of 16, twice", by_blocks(16), by_blocks(16))

# %% [markdown]
# > **A claim, examined.** *Paged attention loses not one bit of precision.* Where the blocks lie
# > changes nothing: the same numbers in the same order through the same operations give the same
# > bits. But a kernel that reads block by block adds up in another order than a contiguous one, and
# > then the results are equal up to rounding, here to six digits behind the point. They are no
# > worse for it: contiguous attention is rounded too.
#
# So what may a test demand? Every bit, where only the place of blocks has changed; a tolerance,
# where blocks have another size, or the kernel is another one.
#
# ## A kernel on paper
#
# A kernel runs in very many *threads* at once. Each thread of an attention kernel reads some of the
# tokens. That is the situation of the two people above: in the end somebody has to merge.
#
# > **Another claim, examined.** *A printed kernel is paged attention in its second version, split over
# > the sequence.* It stands in a text on serving; here is what is wrong with it. It keeps a running
# > maximum, but its query lacks the sequence index, so all requests would read with the same query;
# > the threads' partial results are never merged; they share a buffer without waiting for each
# > other; and one sequence is not split over several groups of threads, which is what the second
# > version is for. The plain kernel printed beside it subtracts no maximum and never divides by the
# > sum.
#
# No GPU is needed to find such faults, only an input on which a fault shows. With one request, one
# thread and one key of score 0 all of them hide. Exercise 04.4 has a short function with four of the
# faults, and asks which of them each of four inputs shows.
#
# ## What it costs
#
# For one new token attention reads the keys and values of the whole context, once, in every layer.
# Llama-3-8B stores 131,072 bytes a token in all 32 layers. How much is that for a context of 4,096
# tokens? And how much more if everything is gathered into a copy first?

# %%
per_token, context, block_size = 131_072, 4096, 16
read_once = per_token * context
print(f"keys and values, read once          {read_once / 2**20:8,.0f} MiB")
print(f"read, written to a copy, read again {3 * read_once / 2**20:8,.0f} MiB")
print(f"table of 1 KiB, read in 32 layers   {32 * 4 * context // block_size / 2**20:8.3f} MiB")
print(f"scores of a layer, all at once      {32 * context * 4 / 2**10:8,.0f} KiB")
print(f"scores of a layer, one block        {32 * block_size * 4 / 2**10:8,.0f} KiB")

# %% [markdown]
# Half a GiB for each new token of one request: the speed of memory sets the pace (lesson 12), and the
# copy would make it three times as much. The table is next to nothing. The last two lines are the other
# gain: 32 heads have a score of 4 bytes for each key, and online softmax needs those of one block
# only, which fit into a GPU's small fast memory beside the processor.
#
# *Then is `attend_one` fast?* No. It is a loop in Python, and the engine's own CPU code gathers and
# lets torch do the rest. Yours is the order of work that lesson 11 turns into a kernel.
#
# ## Where this is in other engines
#
# - **vLLM**: `kernel_paged_attention_2d` in
#   `vllm/v1/attention/ops/chunked_prefill_paged_decode.py` is your loop in Triton, and a comment in
#   it explains why slots behind the last token are not even loaded. `merge_attn_states` in
#   `vllm/v1/attention/ops/merge_attn_states.py` is `merge`.
# - **SGLang**: `_fwd_kernel_stage1` in
#   `python/sglang/srt/layers/attention/triton_ops/decode_attention.py` runs the loop over one part
#   of a sequence and stores output and LSE. `merge_state` is in `merge_state.py` beside it.
# - **nano-vllm**: `Attention` in `nanovllm/layers/attention.py` hands pool and table to
#   `flash_attn_with_kvcache` of the FlashAttention library, which works the same way.
# - **Here**: `paged_attention` in `minipaged/kernels/reference.py`. It gathers.
#
# ## Check yourself
#
# **Exercise 04.4** asks eight questions: a running sum, a merge, bytes, bits, and the function with
# four faults. An open question at the end has a model answer: why does nobody lose by subtracting
# the maximum, and when may a test demand equal bits?
#
# ## Next
#
# So far each block was written by one request and read by one. Lesson 05 lets several read the same
# block, and asks what happens when one of them wants to write.
