# %% [markdown]
# # 01 · Why contiguous memory wastes most of itself
#
# **The question.** A graphics card has 54 GB left for its requests. A request needs a third of a
# gigabyte, they say, so some 160 should fit. At the 35th the server dies, and its error message
# speaks of gigabytes that are free. Where did the memory go?
#
# To a calculation that was wrong, and to three kinds of waste. You will compute the first, count
# the others, and watch the last one happen. The story is one that a lecture on serving tells, and
# this lesson takes its figures one by one: some are right, some only under a condition, some not at
# all. With the exercises this takes about an hour. No model runs, so no GPU is needed.

# %% [markdown]
# ## What one token keeps
#
# A model is a stack of *layers*. In each of them attention compares the newest token with all
# earlier ones, in several ways at once; each way is a *head*. For that the layer keeps of every
# token one *key* and one *value* per head, both vectors of `head_dim` numbers.
#
# Llama-2-7B has 32 layers with 32 heads, `head_dim` is 128, and a number takes two bytes. Before
# reading on: how many bytes does one token keep?
#
# One key: 128 · 2 = 256 bytes. Key and value: 512. Times 32 heads: 16,384 in a layer. Times 32
# layers: 524,288 bytes, half a mebibyte (MiB, 2²⁰ bytes), for a single token. The formula:
#
# ```
# 2 · layers · KV heads · head_dim · bytes per number
# ```
#
# *Why "KV heads" and not "heads"?* Newer models let several heads that ask (*query heads*) share
# one key and value. This is *grouped-query attention*, and what is kept counts the shared ones
# only. Llama-3-8B has 32 query heads in groups of four, so 8 KV heads. Where every head has its own
# key and value one speaks of *multi-head attention*.

# %%
models = {  # layers, KV heads
    "Llama-2-7B": (32, 32),
    "Llama-2-13B": (40, 40),
    "Llama-3-8B": (32, 8),
    "Llama-3-70B": (80, 8),
}
for name, (layers, kv_heads) in models.items():
    per_token = 2 * layers * kv_heads * 128 * 2
    print(f"{name:12} {per_token:9,} B a token   {per_token * 8192 / 2**30:5.2f} GiB for 8,192")

# %% [markdown]
# A model with ten times the parameters of Llama-2-7B keeps less per token, because it shares.
# **Exercise 01.1** is this formula, as a function.
#
# ## One stretch for each
#
# Where do these bytes go? The simplest answer is one unbroken stretch of memory for each request.
# We count it in *slots*, the room for one token.
#
# How long must the stretch be? The *prompt*, the text that the model is to go on from, is known.
# The answer is not: nobody can tell when the model will end. A stretch that lies between two
# others cannot grow. So a server that stores contiguously reserves the longest text that it allows,
# `max_model_len` tokens, for everybody.
#
# Suppose 2,048 slots are reserved and the text ends after 80 tokens. Which share was used? 80 of
# 2,048 are 3.9 %. The other 1,968 slots are *internal* waste: they lie inside the reservation, the
# request never needs them, and nobody else may have them.
#
# Now a hundred requests of 40 to 600 tokens, drawn at random. Guess the share before you run this.
# `compare` counts the reserved slots, the used ones, and those in blocks of 16, where each request
# takes as many blocks as it needs.

# %%
import random

from minipaged.contiguous import compare

random.seed(2026)
hundred = [random.randint(40, 600) for _ in range(100)]
use = compare(hundred, 2048, 16)
for name, slots in (("one stretch each", use.reserved), ("blocks of 16", use.in_blocks)):
    print(f"{name:16} {slots:7,} slots, {slots - use.used:7,} empty, {use.used / slots:6.2%} used")
print(f"ratio {use.reserved / use.in_blocks:.2f}")

# %% [markdown]
# 18.17 % against 97.93 %, and the same hundred requests fit into less than a fifth of the memory.
# Blocks waste inside as well, but only at the end of the last one: 787 slots in all, some 8 for
# each request. If a block holds 16 and any filling is equally likely, how many are empty on
# average? 0 to 15 can be, so 7.5: half of a block, less half a slot.
#
# In **exercise 01.2** you write these three counts yourself.
#
# ## Not yet
#
# So far we looked at each request in its last moment. Until then it has fewer tokens: the slots for
# the rest will be needed, but not now. This is *reservation* waste.
#
# Take two requests in reservations of 400 slots. One ends with 100 tokens, the other with 300. To
# keep the sum short, leave the prompt out: each begins empty and grows by one token a step. So
# while it runs the first uses some 50 slots on average, which is 12.5 % of its reservation, the
# second 150, which is 37.5 %. So what do the two use on average: 25 %?
#
# For the mean over *requests*, yes. But the second runs three times as long. Look into the memory
# at any time, and you will more likely find it than the other. Over *time* the mean is
# (100 · 12.5 + 300 · 37.5) / 400 = 31.25 %.
#
# In general a request of s tokens runs for s steps. In that time it uses s · s/2 slot-steps (one
# slot for one step; exactly s · (s+1)/2) and holds s · S, where S is the reservation. Add up what
# is used over all requests, add up what is held, and divide. E[s] is the mean of the lengths over
# all requests, E[s²] that of their squares:
#
# ```
# over time:      E[s²] / (2 · S · E[s])
# over requests:  E[s] / (2 · S)
# ```
#
# For the two requests E[s²] is (100² + 300²) / 2 = 50,000, and 50,000 / (2 · 400 · 200) is 31.25 %.
# The lecture takes lengths spread evenly from 50 to 450 and 2,048 slots, and says 6.1 % over time.
# Here both means are counted, slot by slot, without a formula.

# %%
held = used = 0
shares = []
for length in range(50, 451):
    slots_used = sum(range(1, length + 1))
    shares.append(slots_used / (2048 * length))
    used, held = used + slots_used, held + 2048 * length
print(f"over requests {sum(shares) / len(shares):.1%}, over time {used / held:.1%}")

# %% [markdown]
# The 6.1 % is the mean over requests; over time it is 7.4 %. The conclusion stays: on average more
# than nine tenths of the memory are empty. Blocks end this kind of waste too, since a request takes
# the next one only when the last is full.
#
# *Is it always that bad?* No. Move the sliders: let the texts come close to the limit, or let the
# blocks get as large as the texts. `over time` means while they grow, `at the end` when they are
# complete. Without sliders, change `start` and run the cell again.


# %%
from minipaged.viz.plots import bars
from minipaged.viz.widgets import explore

SHAPES = {  # shares of the limit
    "mostly short": [0.02, 0.02, 0.03, 0.03, 0.04, 0.05, 0.06, 0.08, 0.15, 0.5],
    "even": [(2 * i + 1) / 20 for i in range(10)],
    "near the limit": [0.9 + 0.01 * i for i in range(1, 11)],
}


def utilisation(lengths, max_model_len, block_size):
    """Bars: per cent of the held slots that hold a token, for both ways."""
    final = [max(1, round(share * max_model_len)) for share in SHAPES[lengths]]
    growing = [n for length in final for n in range(1, length + 1)]
    shares = {"one stretch": [], "blocks": []}
    for tokens in (growing, final):
        use = compare(tokens, max_model_len, block_size)
        shares["one stretch"].append(round(100 * use.used / use.reserved, 1))
        shares["blocks"].append(round(100 * use.used / use.in_blocks, 1))
    title = f"{lengths}, limit {max_model_len}, blocks of {block_size}"
    return bars(["over time", "at the end"], shares, title=title, ylabel="% used", stacked=False)


explore(
    utilisation,
    lengths=list(SHAPES),
    max_model_len=[512, 1024, 2048, 4096],
    block_size=[1, 4, 16, 64, 256, 1024],
    start={"lengths": "mostly short", "max_model_len": 2048, "block_size": 16},
)

# %% [markdown]
# One bar may surprise you: for `mostly short` the share is higher over time than at the end. The
# single long text is nearly always there, and in its later steps it fills a good part of its
# reservation. With `near the limit` a reservation is well used at the end, and with blocks of 1,024
# the blocks have become reservations.
#
# ## The 35th request
#
# Back to the server. Its 13B model "keeps about 160 KB per token". Work out with which number of KV
# heads that is so, with 40 layers and `head_dim` 128, and then how many sessions of 2,048 tokens go
# into 54 · 10⁹ bytes.

# %%
for kv_heads in (8, 40):
    per_token = 2 * 40 * kv_heads * 128 * 2
    sessions = 54e9 / (per_token * 2048)
    print(
        f"{kv_heads:2} KV heads: {per_token:7,} B a token, {sessions:5.1f} sessions of 2,048 tokens"
    )

# %% [markdown]
# 160 KiB are 163,840 bytes: 8 KV heads, and 160 sessions fit. (The lecture says 168, having rounded
# a session to 0.32 GB.) But Llama-2-13B has 40: 819,200 bytes, and 32 sessions fit. A server that
# runs this model and reserves 2,048 slots for each request has to fail before the 35th, however
# tidy its memory is: at the 33rd if all of them take the whole length, a little later if some end
# early. Nothing is scattered; there is too little.
#
# These are two separate causes. One is arithmetic: a wrong size per token. The other is waste: if
# these sessions end with 300 tokens, even the 32 are mostly empty. The error message that comes
# with the story points to a third one: much was free, and still a smaller piece could not be had.
#
# ## Free, but not in a row
#
# Let us look for that. We need an allocator of stretches. Ours is the plainest: *first fit* goes
# through the gaps from the lowest slot on and takes the first that is large enough. It sits beside
# the paged engine: same 512 slots, same 24 requests, same moments of arrival and end. They come
# from a simulated run, in which the engine and its scheduler are real and only the model is left
# out. The engine has 32 blocks of 16; no request has more than 128 tokens.

# %%
from minipaged.contiguous import ContiguousPool
from minipaged.simulate import simulate
from minipaged.viz.figures import show_slots
from minipaged.viz.palette import SIGNS
from minipaged.viz.widgets import step_through
from minipaged.workload import SyntheticWorkload

workload = SyntheticWorkload(
    requests=24, prompt_len=(8, 40), output_len=(8, 88), arrival_rate=0.12, seed=241
)
arrivals = workload.arrivals()
arrivals = [a._replace(request_id=sign) for a, sign in zip(arrivals, SIGNS, strict=False)]
lengths = {a.request_id: len(a.prompt_token_ids) + a.params.max_tokens for a in arrivals}
trace = simulate(arrivals, block_size=16, num_blocks=32, max_num_seqs=8, max_model_len=128)


def until_refused(length_of):
    """Feed the run to first fit until it refuses: that step, whom, and the memory then."""
    pool = ContiguousPool(512)
    for record in trace.steps:
        for event in record.events:
            if event.kind == "admitted":
                try:
                    pool.reserve(event.request_id, length_of[event.request_id])
                except MemoryError:
                    return record, event.request_id, pool
            elif event.kind == "finished":
                pool.release(event.request_id)
    raise AssertionError("everybody found a place")


def show_refusal(length_of):
    """Print what was asked for and what was free; picture of the memory at that moment."""
    record, name, pool = until_refused(length_of)
    print(
        f"{name} asks for {length_of[name]}, free {pool.num_free}, largest gap {pool.largest_gap}"
    )
    written = {work.request_id: work.start_position + work.num_tokens for work in record.work}
    held = sorted((place.start, place.length, other) for other, place in pool.held.items())
    spans = [(*place, written[place[-1]]) for place in held]
    return show_slots(512, spans, title=f"step {record.step}: {name} is refused")


show_refusal(dict.fromkeys(lengths, 128))

# %% [markdown]
# Solid is what holds a token, striped what is reserved and empty. Four reservations fill the
# memory, so F is refused, while two thirds of the slots are empty. But none of them is *free*, and
# no gap is too small: where all reservations are equally long, each gap is as long as one or
# several of them, and the next request fits in (a rest at the end of the memory, shorter than one
# reservation, is all that can be lost). Equal reservations cannot scatter.
#
# Then let us be cleverer, and reserve only what a request will need. Users may set an upper bound
# for the answer. We even assume that somebody knows the exact length.

# %%
show_refusal(lengths)

# %% [markdown]
# Here it is. K asks for 76 slots, and 183 are free, more than twice as many. They lie in four gaps
# of 39, 27, 52 and 65. This is *external* waste: slots outside of all reservations, free, in pieces
# too small for the request that is next. It comes from requests of different lengths that end in
# another order than they began. Better knowledge of the lengths made the pieces unequal.
#
# The same step in the paged engine, and all steps before and after it:

# %%
step_through(trace, 78)

# %% [markdown]
# Every block fits every request, so K got what it needed: at first two blocks, for the 32 tokens of
# its prompt, wherever they lay. Look at its row: blocks 15 and 0. There is no external waste,
# because there is nothing to fit. The engine served all 24, up to 8 at once.
#
# | waste | one stretch, `max_model_len` | one stretch, exact length | blocks |
# |---|---|---|---|
# | internal: never used | much | none | less than one block a request |
# | reservation: not used yet | much | much | the rest of the last block only |
# | external: free, but too small | none | what you saw | none |
#
# In **exercise 01.3** you write first fit, and run the engine beside it.
#
# ## From 42 to 280
#
# The lecture reports an accident. A machine with eight GPUs serves a shop's chat, with 4,096 slots
# reserved for each request, while the chats end after 150 to 300 tokens. The 43rd request is
# refused, it says, because the free memory lies in gaps. After the move to paging the same machine
# carries 280.
#
# You can see what is wrong with the reason: all reservations were equal. The 43rd was refused
# because 42 filled the memory, almost empty as they were.
#
# Let us replay it. Model and memory are not named, so we *assume* memory for exactly 42
# reservations: 42 · 4,096 = 172,032 slots, or 10,752 blocks of 16. What a slot takes in bytes does
# not matter then (with Llama-2-7B it would be 84 GiB in all). A chat has a prompt of 50 to 100
# tokens and an answer of 100 to 200, and 1,000 chats wait at the door. First by hand: how many fit
# if all of them are as long as they will ever be? A chat takes 14.53 blocks on average, so
# 10,752 / 14.53, some 740.
#
# Then the engine, with a limit on how many may run at once, `max_num_seqs`. A chat is *preempted*
# if the engine has to take its blocks away again, because others grow and none is left.

# %%
from minipaged.config import EngineConfig
from minipaged.engine import Engine
from minipaged.exec.sim_exec import SimConfig, SimExecutor
from minipaged.workload import replay

blocks = 42 * 4096 // 16
chats = SyntheticWorkload(requests=1000, prompt_len=(50, 100), output_len=(100, 200), seed=1)


def serve(limit):
    """Most chats running at once, most blocks held, chats preempted, steps."""
    config = EngineConfig.of(
        num_blocks=blocks, max_num_seqs=limit, max_num_batched_tokens=8192, max_model_len=4096
    )
    engine = Engine(config, SimExecutor(config.cache, SimConfig(ledger=False)))
    running = held = steps = 0
    for _ in replay(engine, chats.arrivals()):
        running = max(running, len(engine.scheduler.running))
        held = max(held, blocks - engine.manager.pool.num_free)
        steps += 1
    return running, held, engine.metrics.num_preemptions_total, steps


print("limit  at once  of the memory  preempted  steps")
for limit in (280, 740, 900, 1000):
    running, held, preempted, steps = serve(limit)
    print(f"{limit:5} {running:8} {held / blocks:14.1%} {preempted:10} {steps:6}")

# %% [markdown]
# With 280 chats less than a third of the memory is in use. With 900 there is still room, since not
# all are at their full length at the same time; of these four limits, 1,000 alone makes the engine
# preempt. So by memory alone the step would have been from 42 to 740 and more: 17.6 times as many,
# where 280 are 6.67 times. If 280 was
# really the end, something else ended it: a limit on requests at once, or the speed that users will
# bear. The lecture does not say. More requests at once also have to be *computed* at once; later
# lessons measure that.
#
# ## The figures, judged
#
# What the lecture says, in the order of this lesson; the figures in brackets follow from the same
# sums.
#
# | it says | so it is |
# |---|---|
# | a text of 80 tokens uses 3.9 % of 2,048 slots (250 tokens: 12.2 %, 300: 14.6 %) | right |
# | a mean of 400 tokens uses 9.7 % of 4,096 | 9.77 %, so 9.8 % |
# | lengths from 50 to 450 use 6.1 % of 2,048 over time | right over requests; over time 7.4 % |
# | contiguous storage uses 10 to 20 % of its memory | for means of 200 to 400 in 2,048, at their end: a statement about lengths, not a law |
# | 54 GB hold 168 sessions of a 13B model | 160 with 8 KV heads, 32 with 40 |
# | the 43rd request met scattered memory | not with equal reservations |
# | 68 % of the memory was wasted before, 3.2 % after | chats of 225 tokens in 4,096 leave 94.5 % empty; in blocks of 16 they do leave 3.2 % |
# | from 42 to 280 is 6.6 times | 6.67 |
#
# One more: the error message that the story quotes speaks of 29.80 GiB free, 48.12 GiB allocated
# and 1.43 GiB reserved. PyTorch, the library that printed it, counts what is allocated as part of
# what it has reserved, so these three do not come from one message.
#
# ## Where this is in other engines
#
# - **vLLM**: bytes of a block and layer in `AttentionSpec.real_page_size_bytes`,
#   `vllm/v1/kv_cache_interface.py`. `max_model_len` is only checked, in
#   `check_enough_kv_cache_memory`, `vllm/v1/core/kv_cache_utils.py`: one such request must fit.
# - **nano-vllm**: the formula is one line, `block_bytes`, in `ModelRunner.allocate_kv_cache`,
#   `nanovllm/engine/model_runner.py`.
# - **SGLang**: `MHATokenToKVPool` in `python/sglang/srt/mem_cache/memory_pool.py` holds keys and
#   values of all slots, one pair of tensors a layer.
# - **transformers** can still do it the older way: `StaticCache` in
#   `src/transformers/cache_utils.py` reserves `max_cache_len` tokens for each sequence.
#
# ## Check yourself
#
# **Exercise 01.4** has nine questions, each with a number or a few of them as its answer. Open
# `exercises/01_fragmentation.ipynb`. An open question is at its end: could one not push the
# requests together?
#
# ## Next
#
# Blocks are handed out and taken back thousands of times a second, and no block may ever belong to
# two requests by mistake. Lesson 02 builds the pool that sees to that.
