# %% [markdown]
# # Exercises 04 · Paged attention by hand
#
# Four exercises. Lesson 04 (`lessons/04_paged_attention.ipynb`) leads up to them. Replace each
# `raise NotImplementedError()` by your own code, then run the check below it. At the end the tutor
# reads all its keys and values through your attention.

# %% [markdown]
# ## 04.1 Softmax that does not overflow
#
# Write `stable_softmax` in plain Python: a list of scores in, a list of weights out, one for each
# score, in the same order. It must work for scores of any height, and must not change the list that
# it is given.
#
# - A score of `-math.inf` belongs to a key that must not be read: its weight is 0.
# - If all scores are `-math.inf`, nothing is read: all weights are 0. They do not add up to 1 then.
# - An empty list gives an empty list.
#
# An example: ln 1, ln 2, ln 4, ln 1 give 0.125, 0.25, 0.5, 0.125, and so do the same four scores
# with 1000 added to each. The answers need not be equal to the last bit.
#
# Only the cell of an exercise is graded. If it uses an import or a helper, write that into it.

# %% exercise="04.1"
import math

MASKED = -math.inf  # the score of a key that must not be read


def stable_softmax(scores: list[float]) -> list[float]:
    """The weights of keys with these scores; zeros if no key may be read."""
    ### BEGIN SOLUTION
    top = max(scores, default=MASKED)
    if top == MASKED:
        return [0.0 for _ in scores]
    parts = [math.exp(score - top) for score in scores]
    total = sum(parts)
    return [part / total for part in parts]
    ### END SOLUTION


# %% check="04.1"
from minipaged.course.check import check

check("04.1", stable_softmax)

# %% [markdown]
# ## 04.2 Two halves merged
#
# Two parts of the code have each read some of a query's keys, no key twice. Each comes with a pair
# `(output, lse)`: the mean of the values of its keys, a list of numbers, and the logarithm of the
# sum of the exponentials of its scores. Write `merge`, which gives the pair of all keys together.
# Again in plain Python.
#
# - A half without keys has the LSE `-math.inf`. Its output is a list of NaN, and must not be used.
# - Two halves without keys give a list of zeros, as long as one output, and `-math.inf`.
# - LSEs may be far above 1000 or far below -1000.
#
# An example: `merge(([2.0, 0.0], ln 6), ([6.0, 4.0], ln 2))` is `([3.0, 1.0], ln 8)`. As in 04.1,
# the last bits may differ.

# %% exercise="04.2"
import math

Part = tuple[list[float], float]
EMPTY = -math.inf  # the LSE of a half without keys


def merge(a: Part, b: Part) -> Part:
    """Output and LSE of the keys of both halves."""
    ### BEGIN SOLUTION
    halves = [(output, lse) for output, lse in (a, b) if lse != EMPTY]
    if not halves:
        return [0.0 for _ in a[0]], EMPTY
    top = max(lse for _, lse in halves)
    shares = [math.exp(lse - top) for _, lse in halves]
    total = sum(shares)
    weights = [share / total for share in shares]
    columns = zip(*(output for output, _ in halves), strict=True)
    merged = [sum(w * x for w, x in zip(weights, column, strict=True)) for column in columns]
    return merged, top + math.log(total)
    ### END SOLUTION


# %% check="04.2"
from minipaged.course.check import check

check("04.2", merge)

# %% [markdown]
# ## 04.3 Paged attention
#
# Write `attend_one`: what one query token of one request reads from its keys and values, block by
# block along the table, with online softmax.
#
# - `q`: `[heads, head_dim]`, the query of the token.
# - `k_pool`, `v_pool`: `[num_blocks, block_size, num_kv_heads, head_dim]`. Slots that no token was
#   written to may hold NaN.
# - `block_table`: int64 `[entries]`. Entries behind the block of the last key mean nothing.
# - `context_len`: an int, how many keys the query reads: those at the positions 0 to
#   `context_len - 1`. If it is 0, the result is zeros.
# - The result: `[heads, head_dim]`, with the dtype of `q`, float32 or float64. The pools have the
#   same dtype. The last bits may differ.
#
# A score is q · k, divided by the square root of head_dim. Query head h reads KV head `h // group`,
# where `group` is the number of query heads for each KV head. A loop over the blocks is what is
# wanted; inside a block let torch do all heads and slots at once.
#
# The other function, `paged_attention`, is given. It is what the engine calls once a layer, with
# all queries of a step, and it calls yours for each. `meta` says which query belongs to whom: the
# queries of request `row` are rows `query_start_loc[row]` up to `query_start_loc[row + 1]` of `q`,
# and they are the last of its `seq_lens[row]` tokens. The check calls `paged_attention`, and prints
# `meta` as `AttentionMeta(query_start_loc, seq_lens, block_tables)`.

# %% exercise="04.3"
import torch


def attend_one(
    q: torch.Tensor,
    k_pool: torch.Tensor,
    v_pool: torch.Tensor,
    block_table: torch.Tensor,
    context_len: int,
) -> torch.Tensor:
    """What one query [heads, head_dim] reads from its first context_len keys."""
    ### BEGIN SOLUTION
    heads, head_dim = q.shape
    block_size, num_kv_heads = k_pool.shape[1:3]
    group = heads // num_kv_heads
    top = q.new_full((heads,), -torch.inf)
    total, mixed = q.new_zeros(heads), torch.zeros_like(q)
    for start in range(0, context_len, block_size):
        block = block_table[start // block_size]
        real = min(block_size, context_len - start)
        k = k_pool[block, :real].repeat_interleave(group, dim=1)
        v = v_pool[block, :real].repeat_interleave(group, dim=1)
        scores = (q * k).sum(dim=2) / head_dim**0.5  # [real, heads]
        new_top = torch.maximum(top, scores.amax(dim=0))
        shrink = (top - new_top).exp()
        weights = (scores - new_top).exp()
        total = shrink * total + weights.sum(dim=0)
        mixed = shrink[:, None] * mixed + (weights[:, :, None] * v).sum(dim=0)
        top = new_top
    return mixed / total[:, None] if context_len else mixed
    ### END SOLUTION


def paged_attention(q, k_pool, v_pool, meta):
    """What all queries [tokens, heads, head_dim] of a step read; the engine calls this."""
    out = torch.empty_like(q)
    starts = meta.query_start_loc.tolist()
    for row, keys in enumerate(meta.seq_lens.tolist()):
        for i in range(starts[row], starts[row + 1]):
            context_len = keys - (starts[row + 1] - 1 - i)
            out[i] = attend_one(q[i], k_pool, v_pool, meta.block_tables[row], context_len)
    return out


# %% check="04.3"
from minipaged.course.check import check

check("04.3", paged_attention)

# %% [markdown]
# ## 04.4 Check yourself
#
# Two of the questions are about this function: attention as the lesson's faulty kernels do it, in
# plain Python, with one number a head. Each thread takes every `threads`-th token; on a GPU they
# run at the same time, here one after the other. It has four faults:
#
# - **A** The query does not depend on the sequence.
# - **B** No maximum is subtracted.
# - **C** What the threads found is never merged.
# - **D** The values are never divided by the sum of the exponentials.

# %% given=true
import math


def suspect(queries, keys, values, sequence, threads):
    """The mean of values[sequence] that queries[sequence] reads. So it says."""
    for thread in range(threads):
        total, read = 0.0, 0.0
        for token in range(thread, len(keys[sequence]), threads):
            exponential = math.exp(queries[0] * keys[sequence][token])
            total += exponential
            read += exponential * values[sequence][token]
    return read


# %% [markdown]
# Compute with pencil and paper first; then you may let Python do it.
#
# - **a** Online softmax. The first block has the scores ln 2 and ln 4, the second ln 8 and ln 2.
#   What is the running sum after both? (A number.)
# - **b** One half has the output 2 and the LSE ln 3, the other the output 6 and the LSE 0. What is
#   the output of both together? (A number.)
# - **c** What does `suspect([0], [[1, 2, 3]], [[3, 5, 10]], sequence=0, threads=2)` return? (A
#   number. The right answer to the call would be 6.)
# - **d** A good test shows one fault and no other. Each of these four calls does: mend that one
#   fault, and the answer to the call is right; mend any other one alone, and it is not. Which fault
#   is it, call by call? (Four letters, as in `"ABCD"`.)
#   1. `suspect([1], [[1000]], [[5]], sequence=0, threads=1)`
#   2. `suspect([1], [[-math.log(2), -math.log(2)]], [[2, 4]], sequence=0, threads=2)`
#   3. `suspect([0, 1], [[3, 3], [math.log(1/4), math.log(3/4)]], [[7, 7], [4, 8]], sequence=1,
#      threads=1)`
#   4. `suspect([1], [[0, 0]], [[2, 4]], sequence=0, threads=1)`
# - **e** Llama-3-8B stores 131,072 bytes of keys and values a token, in its 32 layers together. The
#   query of a request's newest token reads a context of 2,048 tokens, its own included. How many
#   MiB of keys and values are that, in all layers? (A number. A MiB has 2 to the 20 bytes.)
# - **f** Which of these leaves every bit of `attend_one`'s result as it was? `"moved"`: all blocks
#   lie elsewhere in the pool, and the table says where. `"resized"`: the same tokens in blocks of
#   32 in place of 16. `"reversed"`: the same keys and values, the last token first. `"split"`: two
#   halves of the context read apart, then merged. (One of the four words, as text.)
# - **g** The context of e, but all its keys and values are first gathered into one copy, which
#   attention then reads. How many MiB are read and written in all? (A number.)
# - **h** What paging adds for the query of e: each layer reads the block table. With blocks of 16
#   and 4 bytes an entry, how many KiB (2 to the 10 bytes) are that in all layers? (A number.)


# %% exercise="04.4"
def answers() -> dict[str, object]:
    """The answer to each question, by its letter."""
    ### BEGIN SOLUTION
    return {
        "a": (2 + 4 + 8 + 2) / 8,
        "b": (3 * 2 + 1 * 6) / (3 + 1),
        "c": 5,
        "d": "BCAD",
        "e": 131_072 * 2048 / 2**20,
        "f": "moved",
        "g": 3 * 131_072 * 2048 / 2**20,
        "h": 32 * 4 * 2048 / 16 / 2**10,
    }
    ### END SOLUTION


# %% check="04.4"
from minipaged.course.check import check

check("04.4", answers)

# %% [markdown]
# ## Run it: the tutor on your attention
#
# Run these cells once the checks have passed. `Components.attention` is the function that reads the
# pool, in every layer and for every token. The first cell calls yours and, beside it, the
# reference's, to see how far apart the two are.

# %%
from dataclasses import replace

from minipaged import LLM
from minipaged.components import Components
from minipaged.kernels import reference

torch.set_num_threads(1)  # for so small a model a second thread costs more than it helps
questions = ["What is a slot?", "What is EOS?"]
right = [answer.text for answer in LLM("tutor").generate(questions)]
gaps = []


def compared(q, k_pool, v_pool, meta):
    """Your attention; how far it is from the reference's is noted."""
    yours = paged_attention(q, k_pool, v_pool, meta)
    gaps.append((yours - reference.paged_attention(q, k_pool, v_pool, meta)).abs().max().item())
    return yours


def ask(attention, questions=questions, **options):
    """What the tutor says when it reads through this attention."""
    llm = LLM("tutor", components=replace(Components(), attention=attention), **options)
    answers = llm.generate(questions)
    llm.engine.check()  # raises if a block, refcount or slot is not as it must be
    return [answer.text for answer in answers]


texts = ask(compared)
print(*texts, sep="\n")
print("same texts as the reference:", texts == right)
print("every bit equal in most calls:   ", 2 * gaps.count(0.0) > len(gaps))
print("a difference above 0.0001 in any:", max(gaps) > 1e-4)

# %% [markdown]
# Read block by block, most results differ in their last bits, and no word does. The model picks the
# token that it finds most likely, and differences so small do not change which one that is. They
# can, where two tokens are all but equally likely: that is why an engine's answers may depend on
# its kernel.
#
# Now all your parts together: queue and pool from lesson 02, the table from lesson 03, attention
# from here, in small blocks. `mine` takes yours, or the reference's where you have none.

# %%
from minipaged.course.mine import mine

parts = replace(
    Components(),
    free_queue=mine("02.1"),
    block_pool=mine("02.2"),
    block_table=mine("03.1"),
    attention=paged_attention,
)
llm = LLM("tutor", components=parts, block_size=4, num_blocks=64)
texts = [answer.text for answer in llm.generate(questions)]
llm.engine.check()
print("same texts as the reference:", texts == right)

# %% [markdown]
# That is also what `minipaged mine` does, with more questions and a pool so small that requests are
# preempted.
#
# ### Three faults
#
# None of these raises an exception, and each changes a single thing: query heads 1 and 2 read each
# other's KV head; the scores are not divided by the square root of head_dim, which is 32; every
# query misses the last key, its own. Of four answers, how many will be right with each of the
# three? Guess before you run the cell.

# %%
from minipaged.kernels.meta import AttentionMeta


def heads_in_turn(q, k_pool, v_pool, meta):
    """Query head h reads KV head h % 2."""
    turn = [0, 2, 1, 3]
    return paged_attention(q[:, turn], k_pool, v_pool, meta)[:, turn]


def unscaled(q, k_pool, v_pool, meta):
    """The square root is left out."""
    return paged_attention(q * q.shape[2] ** 0.5, k_pool, v_pool, meta)


def one_short(q, k_pool, v_pool, meta):
    """A query does not read its own key."""
    shorter = AttentionMeta(meta.query_start_loc, meta.seq_lens - 1, meta.block_tables)
    return paged_attention(q, k_pool, v_pool, shorter)


four = [*questions, "What is preemption?", "What is paging?"]
right = ask(reference.paged_attention, four, max_model_len=150)
for fault in (heads_in_turn, unscaled, one_short):
    texts = ask(fault, four, max_model_len=150)
    same = [text == other for text, other in zip(texts, right, strict=True)]
    print(f"{fault.__name__:14} {sum(same)} of 4 answers as they should be")
print(f"one_short on preemption: {texts[2][:46]!r}")

# %% [markdown]
# The first two ruin every word. The third is the kind to be afraid of: two answers are right, and a
# third is fluent and wrong. So equal text on two short questions proves little, for your own
# attention above too; what speaks for it is that no number was further than 0.0001 from the
# reference's. `engine.check` looked at every block, refcount and slot after each of these runs and
# found them right, so an engine's bookkeeping cannot see such a fault either. Compare numbers, on
# inputs that are not all alike.
#
# ## An open question
#
# Three doubts, and a few sentences for each. (1) Subtracting the maximum turns the exponentials of
# low scores into 0. Why does nobody lose by that? (2) Could one subtract a fixed number in place of
# the maximum, say 50, and save the search? (3) You change the block size from 16 to 32, and a test
# that compares results bit by bit fails. A colleague wants a tolerance in the test; another wants
# the order of summation fixed for good. What does each get, and what does each give up?
#
# There are no points for this one. Write your answer into the next cell; `minipaged solution 04`
# then shows the model answer.

# %% [markdown] open=true
# ### BEGIN SOLUTION
# **(1) The maximum.** Weights are shares of one sum, and the highest score's share of it is at
# least 1 over the number of keys. A score that is 104 or more below the highest has a weight under
# e to the -104, some 10 to the -45, and a float32 has no number so small. Beside a sum of at least
# 1 it could not be seen anyway: a float32 has seven digits, so whatever is more than 17 below the
# top already vanishes when it is added to it. What is lost was lost before, and what matters is
# kept exactly where float32 is at its best, between 0 and 1.
#
# **(2) A fixed number.** It works as long as all scores lie near it. Above 138 the exponential
# overflows again, and if a query's scores are all below -54, all of its exponentials are 0 and the
# division is 0 by 0. The maximum fits whatever comes, and online softmax finds it on the way. Some
# kernels do use an estimate, with a way back for the case that it was wrong.
#
# **(3) The test.** The tolerance says what the mathematics promises: the same result up to
# rounding. It lets kernels, block sizes and splits change. It gives up noticing small faults: it
# has to be tight, and the test's numbers such that a fault shows. A fixed order gives equal bits
# on every run, whichever other requests run beside it, which helps when a fault is to be
# repeated. It gives up freedom: a long context can then not be split among more processors when
# there are some to spare, and the next card's fastest kernel may be ruled out. So one uses both:
# bits are compared for the same kernel on the same shapes, where the order is the same (whether the
# blocks have moved must not matter there), and a tolerance for everything else.
# ### END SOLUTION
