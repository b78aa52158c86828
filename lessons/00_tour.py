# %% [markdown]
# # 00 · A tour of the engine
#
# **The question.** You type a sentence, an answer comes back word by word, and seven other people
# are being served meanwhile by the same model. Who decides what runs next, and where is the memory
# that all eight need?
#
# A *serving engine* does: the program between the model and all who ask it. You will ask a small
# model something, watch eight *requests* (one is a text sent to the model, until its answer is
# complete) share one memory, work out how much of it one request holds, and write your first two
# lines of the engine. Allow 25 minutes. Everything runs on this machine, without a GPU and without
# a network.

# %% [markdown]
# ## One question
#
# The *tutor* is a language model small enough to come inside this package. It knows one subject:
# serving engines. Ask it something, to see that there is a real model behind all that follows.

# %%
from minipaged import LLM

llm = LLM("tutor")
answer = llm.generate("What is a block table?")[0]
print(answer.text)

# %% [markdown]
# A model produces its answer one *token* at a time, and for the tutor a token is one byte of text.
# So there is something to show long before the answer is complete. `stream` hands over each piece
# as soon as it is certain; count how many there are.

# %%
pieces = []
for piece in llm.stream("What is a slot?"):
    print(piece, end="", flush=True)
    pieces.append(piece)
print(f"\n{len(pieces)} pieces")

# %% [markdown]
# ## Eight at once
#
# A server rarely has one visitor. These eight questions have short and long answers, and nobody
# knows beforehand which is which. You put them in together, and a *recorder* notes what the engine
# does at every step, for you to look at in a moment.
#
# The memory is set by hand this time. What must be kept of every token, as long as its request
# lives, are its *keys and values*: *attention*, the part of the model in which a token looks back
# at those before it, computes them once and reads them again for each later token. The room for
# those of one token is a *slot*, and slots come in *blocks*: here 96 blocks of 16 slots.

# %%
from minipaged.trace import Recorder

questions = [
    "What is a block table?",
    "What is a slot?",
    "What is continuous batching?",
    "What is EOS?",
    "What is paged attention?",
    "What does block_size mean?",
    "What is the token budget?",
    "What is preemption?",
]
llm = LLM("tutor", block_size=16, num_blocks=96)
recorder = Recorder(llm.engine)
llm.engine.observers.append(recorder)
answers = llm.generate(questions)
for letter, answer in zip("ABCDEFGH", answers, strict=True):
    print(letter, f"{len(answer.token_ids):4} tokens:", answer.text[:60])

# %% [markdown]
# B is the answer that came in 53 pieces before, and here it has 54 tokens: the last one only says
# that the answer ends, it has no text.
#
# The model runs once per *step*, and a step gives each request at most one new token. Served one
# after the other, the eight would take as many steps as their answers have tokens. How many steps
# did they take together? Guess before you run the cell.

# %%
trace = recorder.trace
print("steps, one after the other:", sum(len(answer.token_ids) for answer in answers))
print("steps, together:           ", len(trace.steps))

# %% [markdown]
# Together they take as many steps as the longest answer has tokens; the others come along.
#
# ## Inside a step
#
# Each step is the same three calls. The *scheduler* decides which requests compute how many tokens,
# the *executor* runs the model on them, and the engine takes the new tokens over. The rest of this
# course is about doing these three well.
#
# Here is the first step. Each character of the grid is one block: the letter of the request that
# holds it, or a dot if it is free; the number at the left is that of the first block in the row.
# Below the grid stands, for each request, how many tokens it has in the memory, how many slots
# behind them are empty, and its *block table*: the list of its blocks, in order.

# %%
from minipaged.viz.palette import Palette
from minipaged.viz.text import step_picture

palette = Palette()
print(step_picture(trace.steps[0], trace.block_size, palette))

# %% [markdown]
# All eight *prompts*, the texts that the model is to go on from, are read in this one step. A
# prompt is longer than its question, because a fixed introduction to the model precedes it. So far
# the blocks of a request lie side by side. Now move on by sixty steps, when three requests have
# finished.

# %%
print(step_picture(trace.steps[60], trace.block_size, palette))

# %% [markdown]
# The blocks of B, D and F went back the moment these three were done, and the others have begun to
# use them. Follow H in the grid: it begins at block 44 and goes on where there was room. Its keys
# and values are scattered, and its block table says where they are. Later still:

# %%
from minipaged.viz.widgets import step_through

step_through(trace, step=200)

# %% [markdown]
# The same picture, drawn: a full block is filled in, and the last block of a request as far as it
# has tokens. Run the cell and move the slider to see any other step.
#
# Two doubts are in order. *Does the answer not suffer if its memory lies in pieces?* No: attention
# reads the pieces in the order of the table, and lesson 04 will have you show it. *Who sees to it
# that no block is given to two requests?* The pool does, by counting; you will write it in lesson
# 02.
#
# ## How many blocks?
#
# A block holds 16 tokens, and a request has 37. Before reading on: how many blocks does it hold,
# and how many slots in them are empty?
#
# Two blocks are full with 32 tokens. Five are left over, and they need a block as well, although
# they fill less than a third of it. So three blocks: 48 slots, 11 of them empty. Now look back at
# request G in the first step: 96 tokens, six blocks, nothing empty. A seventh block would have been
# one too many.
#
# The rule: divide the tokens by the block size and round up. It is asked at every step, for every
# request, and it goes wrong in three ways that are easy to write: rounding down, adding one always,
# and forgetting that 0 tokens need 0 blocks. **Exercise 00.1** is this rule; one thing before you
# open it.
#
# ## How checking works
#
# In an exercise notebook you replace `raise NotImplementedError()` by your own code and run the
# check cell under it. The check calls your function with small cases and compares what comes back,
# type included: 3 and 3.0 are not the same. For the first case that fails it shows the call, what
# was expected and what came. `check("00.1", blocks_needed, hint=1)` adds a hint; there are three,
# each says more than the one before.
#
# In a terminal `minipaged check` does the same with the notebook as you saved it, and keeps in mind
# what is done; `minipaged next` goes on, and `minipaged` alone says where you are.
#
# For points, run `minipaged grade` on your notebook. It takes your cell out of the notebook, runs
# it in a process of its own, and gives it the cases that you know and some that you do not, made
# from a seed. The check cell says how many. So editing the check cell changes nothing, and neither
# does printing "passed". Only this one cell is graded: the imports and helpers that it uses belong
# into it.
#
# Now open `exercises/00_tour.ipynb`, write the rule, and come back; it ends with your function
# beside the engine, compared at every step of these eight requests.
#
# ## What a reservation takes
#
# Why blocks at all? The older way gives every request one unbroken stretch of memory, long enough
# for the longest text that the model allows, since nobody can tell how long an answer will be. The
# tutor allows 1,024 tokens. Work it out for eight requests, and how many of them would have fitted
# into our 96 blocks of 16. Then let the cell do it, beside what the eight really held at the
# busiest step.

# %%
longest = llm.engine.max_model_len
slots = trace.num_blocks * trace.block_size
held = max(trace.num_blocks - record.num_free for record in trace.steps) * trace.block_size
print(f"reserved for eight requests: 8 * {longest} = {8 * longest} slots")
print(f"held in blocks at most:      {held} slots")
print(f"this memory has {slots} slots: room for {slots // longest} reservation at a time")

# %% [markdown]
# In the memory in which eight requests ran side by side, the older way would have served them one
# by one. The gain depends on how far the longest allowed text is from the usual one; lesson 01
# will compute it for many requests, and say when it is small.
#
# *And what does it cost?* One look-up in the table for every block that attention reads. Lessons 11
# and 12 will count it.
#
# ## Where this is in other engines
#
# A step here is `Engine.step` in `minipaged/engine.py`. Elsewhere you find the step, and the rule
# of exercise 00.1, in these places:
#
# - **vLLM**: `EngineCore.step` in `vllm/v1/engine/core.py`; the rule in `allocate_new_blocks`,
#   `vllm/v1/core/single_type_kv_cache_manager.py`.
# - **SGLang**: `Scheduler.event_loop_normal` in `python/sglang/srt/managers/scheduler.py`; the rule
#   in `alloc_extend_naive`, `python/sglang/srt/mem_cache/allocator/paged.py`. A block is a *page*
#   there.
# - **nano-vllm**: `LLMEngine.step` in `nanovllm/engine/llm_engine.py`; the rule in
#   `Sequence.num_blocks`, `nanovllm/engine/sequence.py`.
#
# ## Check yourself
#
# 1. A request has 64 tokens and blocks of 16. It gets one more token. How many blocks does it hold
#    now, and how many slots are empty?
# 2. With blocks of 128 instead of 16, how many slots would be empty behind the 37 tokens?
#
# <details><summary>Answers</summary>
#
# 1. Five blocks. The 65th token stands alone in the fifth, so 15 slots are empty.
# 2. One block, and 128 - 37 = 91 empty slots.
#
# </details>
#
# ## Next
#
# Lesson 01 measures what contiguous memory wastes. In lesson 02 you build the pool that hands out
# the blocks, and in lesson 03 the block table. From then on they are the ones that the engine runs
# on.
