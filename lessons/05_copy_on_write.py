# %% [markdown]
# # 05 · Copy-on-write: fork, samples, beam search
#
# **The question.** One prompt, four answers: so that a person can choose, or a program can take the
# one that came most often. All four begin with the same keys and values. Must the memory hold them
# four times? And if not: what happens when one of the four writes?
#
# You will count blocks, watch the engine share them, and write the table that can be forked. Then
# beam search, which forks and drops all the time. Allow 60 minutes with the exercises. You need the
# pool of lesson 02 and the table of lesson 03.

# %% [markdown]
# ## A number first
#
# A prompt has 38 tokens, a block 16 slots. Four *samples* are asked for: four answers to the same
# prompt, each drawn by chance. How many blocks hold the prompt if each sample has a copy of it? How
# many if they share? And how many do they need, sharing, once each has written one token of its
# own?
#
# 38 tokens take 3 blocks: two full ones, and a third with 6 tokens. Four copies are 12 blocks.
# Shared, it is 3: all four tables read `[0, 1, 2]`, and the refcount of each block is 4.
#
# Then all four write position 38, the seventh place of block 2, and each wants its own token there.
# One slot cannot hold four tokens, so four different blocks are needed. Blocks 0 and 1 are full,
# nobody will ever write into them, and they stay shared: 2 + 4 = 6 blocks, half of 12.
#
# ## As an operating system does it
#
# A process that calls `fork` gets a twin, and not a byte of its memory is copied. The twin has a
# page table of its own that leads to the same frames. Both may read them. Whoever writes first is
# stopped, gets a copy of that one page, and writes there. This is *copy-on-write*.
#
# A *fork* of a block table is the same: a new table with the same entries, and one holder more for
# each block. A block with several holders may be read by all of them and written by none.
#
# *Who pays?* Whoever writes, at the moment of writing. Those who only read, or end before they
# write, pay nothing.
#
# *How often?* Four tables hold block 2. The first writer takes a new block, has the old one copied
# there, lets its table lead to the new one, and gives back its hold: refcount 3. So does the
# second: 2. So does the third: 1. The fourth is the only holder by then, and nobody is left who
# needs the old contents. It writes in place. So there are 3 copies. A fourth would cost a block
# and a copy, only to set the original free.
#
# *Is the original not the parent's?* No table is special. The refcount says how many hold a block,
# not who was first.
#
# ## Watch it
#
# The real engine runs over the ledger of lesson 02, with one request A, which comes at step 0.
# `SamplingParams` says how it is answered: n = 4 samples of 12 outputs each (`ignore_eos`: none ends
# before that), drawn by chance (`temperature=1.0`) that `seed` makes repeatable. Sample 0 is A
# itself. The others are called `A~1`, `A~2` and `A~3`, and B, C and D in the pictures. A copy is
# printed as (from, to).

# %%
from minipaged import SamplingParams
from minipaged.simulate import simulate
from minipaged.viz.widgets import step_through
from minipaged.workload import Arrival

four = SamplingParams(n=4, temperature=1.0, seed=7, max_tokens=12, ignore_eos=True)
prompt = list(range(1, 39))
trace = simulate([Arrival("A", prompt, four, 0)], block_size=16, num_blocks=16)
for record in trace.steps[:2]:
    print(f"step {record.step}: copies {record.copies}, {16 - record.num_free} blocks held")
    for name, table in sorted(record.tables.items()):
        print(f"  {name:4} {table}")

# %% [markdown]
# Step 0 computes the prompt, once, and draws four tokens from the one result. At its end A's table
# is forked for the three others. *Why is there no copy yet?* Because a token's keys and values are
# computed in the step after it was drawn. In step 1 all four are written: three copies, and `A~3`,
# the last writer, keeps block 2.

# %%
step_through(trace, step=1)

# %% [markdown]
# "+" marks the blocks with several holders. Move on to step 11: each table has grown by one more
# block, and the full blocks 0 and 1 are still shared.
#
# ## Copies before writes
#
# A step's plan lists the copies beside the tokens to compute. The order matters: all copies first,
# then all writes. Suppose it is the other way round. Which of the four samples come out wrong?
#
# Work it out on one slot. A writes its token into its new block 3. Then comes the copy of block 2
# to block 3 and covers it. What it brings along there is D's token, which D has just written into
# block 2.

# %%
from minipaged import EngineConfig
from minipaged.engine import Engine
from minipaged.exec.sim_exec import SimExecutor
from minipaged.plan import StepPlan


class CopiesLate(SimExecutor):
    def execute(self, plan):
        copies, plan.copies = plan.copies, []
        result = super().execute(plan)
        super().execute(StepPlan(plan.step, copies=copies))
        return result


def make_engine(executor=SimExecutor, num_blocks=64, block_size=16):
    config = EngineConfig.of(block_size=block_size, num_blocks=num_blocks, max_model_len=192)
    return Engine(config, executor(config.cache))


def run(engine):
    """Step until all is done; the tokens of each (request, sample)."""
    tokens = {}
    while engine.has_unfinished_requests():
        for output in engine.step():
            key = output.request_id, output.sample_index
            tokens.setdefault(key, []).extend(output.new_token_ids)
    return tokens


came = []
for executor in (SimExecutor, CopiesLate):
    engine = make_engine(executor)
    engine.add_request("A", prompt, four)
    came.append(run(engine))
right, late = came
for (name, index), tokens in right.items():
    same = late[name, index] == tokens
    print(f"sample {index}: {tokens[:4]} …  with late copies {'the same' if same else 'wrong'}")

# %% [markdown]
# The three that copied are wrong, and the one that wrote in place is right. No check of tables and
# counts can notice: all of them are as they should be.
#
# ## On a border, and off it
#
# With a prompt of 48 tokens there is nothing to copy: three full blocks stay shared, and each
# sample begins a block of its own. The engine counts its copies.

# %%
for length in (46, 47, 48, 49, 50):
    engine = make_engine()
    engine.add_request("A", list(range(length)), four)
    engine.step()
    engine.step()
    held = 64 - engine.manager.pool.num_free
    print(f"prompt {length}: {engine.metrics.num_copied_blocks_total} copies, {held} blocks held")

# %% [markdown]
# Find the two rules behind it, for n samples of a prompt of P tokens in blocks of b. The one for
# the copies has a special case. The one for the blocks has none: on a border as inside a block, the
# full blocks of the prompt stay shared, and each sample ends up with one block of its own.
#
# Engines have got this wrong. One such report has block size 4, a prompt of 6 tokens and two
# samples: without the copy both read the token that was written last.
#
# **Exercises 05.1** (`exercises/05_copy_on_write.ipynb`) and **05.2** are the table and the two
# rules.
#
# ## Play with it
#
# Each move of a slider runs the engine until every sample has written one token. "Each alone" is
# the number of entries in all tables: so many blocks would be held if nobody shared.

# %%
from minipaged.viz.plots import bars
from minipaged.viz.widgets import explore


def blocks_held(prompt_len, n, block_size):
    engine = make_engine(num_blocks=256, block_size=block_size)
    engine.add_request("A", list(range(prompt_len)), SamplingParams(n=n, max_tokens=3))
    engine.step()
    engine.step()
    held = 256 - engine.manager.pool.num_free
    copies = engine.metrics.num_copied_blocks_total
    title = f"{copies} copies of a block, {copies * block_size} slots in all"
    blocks = {"blocks": [engine.manager.num_entries, held]}
    return bars(["each alone", "shared"], blocks, title=title, ylabel="blocks held")


explore(
    blocks_held,
    start={"prompt_len": 38, "n": 4, "block_size": 16},
    prompt_len=(1, 130, 1),
    n=[1, 2, 4, 8, 16],
    block_size=[1, 2, 4, 8, 16, 32, 64, 128],
)

# %% [markdown]
# *Do small blocks not mean more copies?* No. Move block_size down: the copies do not become more,
# and with block size 1 there are none, because every block is full. A larger block is
# less likely to end where the prompt ends, and each copy moves more. Llama-3-8B keeps 131,072 bytes
# a token: 3 copies are 6 MiB with block size 16 and 48 MiB with block size 128. *Is that much?* The
# memory of an H100, a large GPU, moves 3,350 GB a second; 6 MiB, read and written, take under 4
# microseconds.
#
# ## An agent's branch
#
# Nothing says that a fork happens at the prompt. An *agent*, a program that lets a model act and
# looks at what comes of it, wants to try two ways from where it stands. `engine.fork` gives a live
# request a twin between two steps. The request below has 38 prompt tokens and has computed 4 of its
# outputs. How many copies will there be? And how many if the parent is ended first?


# %%
def branch(end_parent):
    engine = make_engine()
    one = SamplingParams(temperature=1.0, seed=7, max_tokens=12, ignore_eos=True)
    engine.add_request("A", prompt, one)
    for _ in range(5):
        engine.step()
    other = SamplingParams(temperature=1.0, seed=8, max_tokens=7, ignore_eos=True)
    engine.fork("A", "B", other)
    tables = {name: list(table.block_ids) for name, table in engine.manager.tables.items()}
    print("right after the fork:", tables)
    if end_parent:
        engine.abort("A")
    for (name, _), tokens in run(engine).items():
        print(f"  {name} goes on with {tokens}")
    print("  copies:", engine.metrics.num_copied_blocks_total)


branch(end_parent=False)
branch(end_parent=True)

# %% [markdown]
# One copy, by whoever writes first; none if the parent is gone, because B is the last holder then.
# B's answer is the same both times. (The first token that the two write is the same one, drawn
# before the fork. The block is copied nevertheless: the engine counts holders and compares nothing.)
#
# ## Chance that can be repeated
#
# Each sample has its luck. Where does it come from? If all drew from one generator of random
# numbers, a token would depend on who drew before: on the other requests of the step, on whether
# one was preempted and came back. In this engine the random number behind a token is a function of
# three things only: the request's seed, the number of the sample, and the position of the output.
# So with one seed the four answers differ from each other, and every run gives the same four. To put
# it to the test: a pool so small that samples are preempted and computed again.

# %%
engine = make_engine(num_blocks=6)
engine.add_request("A", prompt, four)
again = run(engine)
print(engine.metrics.num_preemptions_total, "preemptions, the same tokens:", again == right)
print("four different answers:", len({tuple(tokens) for tokens in right.values()}) == 4)

# %% [markdown]
# *And temperature 0?* The higher the temperature, the more often an unlikely token is drawn. At 0
# nothing is drawn: all samples take the likeliest token, and four answers are four times the same.
#
# ## Beam search, by hand
#
# Taking the likeliest token at each step need not lead to the likeliest text. *Beam search* keeps
# several unfinished texts, the *beams*, and lets their continuations compete. Their number is the
# *width*.
#
# A text's probability is the product of its tokens' probabilities. One adds *log-probabilities*
# instead, their logarithms: negative numbers, and the nearer to 0, the likelier. Width 2, a made-up
# model, and the log-probabilities of three of its tokens after each text (its others are too
# unlikely to matter):
#
# | after | a | b | c |
# |---|---|---|---|
# | the prompt | -0.5 | -1.0 | -4.0 |
# | a | -1.5 | -1.25 | -2.0 |
# | b | -0.25 | -2.0 | -3.0 |
# | ab | -1.0 | -1.5 | -2.0 |
# | ba | -3.0 | -0.5 | -1.25 |
#
# Three steps, on paper. In each: write down the sums of all continuations of all beams, keep the
# best two, and note the *parent* of each, the place of the beam that it continues, counted from 0,
# best beam first.

# %%
after = {
    "": (-0.5, -1.0, -4.0),
    "a": (-1.5, -1.25, -2.0),
    "b": (-0.25, -2.0, -3.0),
    "ab": (-1.0, -1.5, -2.0),
    "ba": (-3.0, -0.5, -1.25),
}
totals = {"": 0.0}
for beams in ([""], ["a", "b"], ["ba", "ab"]):
    for beam in beams:
        for token, logprob in zip("abc", after[beam], strict=True):
            totals[beam + token] = totals[beam] + logprob
        print(f"{beam or 'prompt':6}", {beam + token: totals[beam + token] for token in "abc"})

# %% [markdown]
# Step 1: a (-0.5) and b (-1.0), both from the prompt; parents 0, 0. Step 2: ba (-1.25) and ab
# (-1.75); parents 1, 0: the second has overtaken the first. Step 3: bab (-1.75) and bac (-2.5);
# parents 0, 0. Always taking the likeliest token would have given a, ab, aba: -2.75.
#
# **Exercise 05.3** is this step.
#
# *And a text that ends?* If the end token is among the best, that beam is finished and set aside,
# and others go on in its place. Every token makes a sum smaller, so texts of different lengths are
# compared by their sum divided by the length. When to stop looking is a question of its own; the
# rules are at the top of `minipaged/beam_scores.py`.
#
# ## Beams on shared blocks
#
# Now read the parents as orders to the memory. A beam that is a parent twice is forked; three times,
# forked twice. One that is nobody's parent is *dropped*: its table is released. One that is a parent once goes on in its own
# table, whatever its place. Below are the three steps on a prompt of 38 tokens, with the engine's
# own manager of blocks and no model. Predict the blocks held after each step.

# %%
from itertools import count

from minipaged.cache.manager import KVManager
from minipaged.request import Request

names, manager = count(), KVManager(num_blocks=16, block_size=16)


def new_beam():
    return Request(f"beam {next(names)}", [], SamplingParams())


def compute(beam, num_tokens):
    """Room for the next tokens of a beam; the copies that this takes."""
    manager.grow(beam, num_tokens)
    # what the engine notes down once a step is over
    beam.num_computed_tokens += num_tokens
    beam.num_inflight_tokens = 0
    return [tuple(copy) for copy in manager.take_copies()]


beams = [new_beam()]
compute(beams[0], 38)
for parents in ([0, 0], [1, 0], [0, 0]):
    following = []
    for parent in parents:
        beam = beams[parent]
        if beam in following:
            beam = new_beam()
            manager.fork(beams[parent], beam)
        following.append(beam)
    dropped = [beam for beam in beams if beam not in following]
    for beam in dropped:
        manager.release(beam)
    beams = following
    copies = [copy for beam in beams for copy in compute(beam, 1)]
    tables = [manager.tables[beam.request_id].block_ids for beam in beams]
    held = manager.num_blocks - manager.pool.num_free
    print(
        f"parents {parents}: {len(dropped)} dropped, copies {copies}, tables {tables}, {held} held"
    )

# %% [markdown]
# Four blocks after each step, where two beams alone would hold six. In the second step nothing is
# forked: no copy. In the third ab goes and ba is forked, so the block that ab gave back is the one
# that the copy is made into. Beams share outputs as well: after some steps like the third all have
# their beginning in common, and full blocks of it are held once.
#
# ## What sharing saves
#
# First by sum. A prompt of 38 tokens, 4 samples of 60 outputs: 97 slots each, because the last
# output is never stored. That is 7 blocks each, 28 in all. Shared, 2 blocks of the prompt are held
# once and each sample has 5 more: 22. At the end sharing saves 6 of 28, 21 %; at the beginning it
# was half.
#
# For beams there is no such sum: it depends on how they branch. So measure, on the tutor: blocks
# held, and entries of all tables, which is what would be held without sharing, added up over all
# steps. 60 outputs each, block size 16. Printed beside it: with how many equal characters the four
# texts begin.

# %%
from itertools import takewhile

from minipaged import LLM, BeamSearchParams


class Counted:
    """Watches an engine: blocks held, and table entries, added up over its steps."""

    def __init__(self, engine):
        self.held = self.alone = 0
        engine.observers.append(self)

    def event(self, kind, request_id, detail=""):
        pass

    def planned(self, engine, plan):
        self.held += engine.manager.num_blocks - engine.manager.pool.num_free
        self.alone += engine.manager.num_entries

    def committed(self, engine, plan, result, outputs):
        pass


samples = SamplingParams(n=4, temperature=1.0, seed=7, max_tokens=60, ignore_eos=True)
search = BeamSearchParams(beam_width=4, max_tokens=60, ignore_eos=True)
known, unknown = "What is a block table?", "Tell me about cats"
for question in (known, unknown):
    length = len(LLM("tutor").engine.check_prompt(question, samples))
    print(f"{question}  (a prompt of {length} tokens)")
    for kind in ("samples", "beams"):
        llm = LLM("tutor", block_size=16, num_blocks=64)
        counted = Counted(llm.engine)
        if kind == "beams":
            four_texts = llm.beam_search(question, search)[0]
        else:
            four_texts = llm.generate(question, samples)[0].samples
        saved = 1 - counted.held / counted.alone
        copies = llm.engine.metrics.num_copied_blocks_total
        columns = zip(*(one.text for one in four_texts), strict=False)
        equal = len(list(takewhile(lambda column: len(set(column)) == 1, columns)))
        print(f"  4 {kind:8} saved {saved:.1%}   {copies:2} copies   {equal:2} characters equal")

# %% [markdown]
# `LLM.beam_search` does with requests what the cell above did by hand: after each step it aborts,
# forks, and exchanges the last token of each beam for the chosen one, before that token is written.
# Beams save more than samples, because they share outputs too, above all on the question that the
# tutor does not know: its four beams are equal for 42 characters. The four samples are equal for all
# 60, as the tutor is sure of its answers, and yet share none of their outputs. Nobody compares
# blocks: what was written after a fork is held by its writer alone.
#
# > **A claim, recomputed.** *Copy-on-write saves over 55 % of memory in beam search.* That figure
# > is the PagedAttention paper's, for its own workload. With a model of 13 billion parameters it has
# > 37.6 to 55.2 % for beams and 6.1 to 9.8 % for samples on Alpaca, a set of short prompts, and 44.3
# > to 66.3 % and 16.2 to 30.5 % on ShareGPT, longer conversations. Ours, counted in the
# > same way: 49.5 and 58.2 % for beams, 45.8 and 47.3 % for samples. The share of the prompt, the
# > model, the width and the block size all move it. A limit is easy to see: width 4 cannot save more
# > than three blocks of four, 75 %.
#
# *Is it lost if a sample is preempted?* Yes. Its hold on the shared blocks is given back, and when
# it returns it computes all its tokens into blocks of its own. Finding the shared ones again is the
# business of a prefix cache, lesson 09.
#
# ## Where this is in other engines
#
# - **minipaged**: `fork` and `_copy` in `minipaged/cache/manager.py`, beams in `minipaged/beam.py`
#   and `minipaged/beam_scores.py`.
# - **vLLM** began with what you see here; its first engine had a `CopyOnWriteTracker` in
#   `vllm/core/block/common.py`. Today's, V1, has no copy-on-write. `ParentRequest` in
#   `vllm/v1/engine/parallel_sampling.py` turns one request for n samples into n requests, with the
#   seeds seed, seed + 1, …. They find the full blocks of the prompt through the prefix cache, and
#   what stands behind the last full block each computes for itself. Its beam search asks for one
#   token a beam and step, as new requests.
# - **SGLang**: `_handle_batch_request` in `python/sglang/srt/managers/tokenizer_manager.py` sends
#   the prompt once, with no output to write, so that the cache knows it, and then n requests.
# - **nano-vllm** gives one answer a prompt. Its blocks have a `ref_count`, for its prefix cache.
#
# Both large engines trade a copy of at most one block a sample for computing at most one block's
# tokens again: one mechanism less to keep right. The refcount stays.
#
# ## Check yourself
#
# **Exercise 05.4** asks seven questions with other numbers: blocks, copies, bytes, forks and drops,
# and what goes wrong when. A question without points at the end compares all this with the
# operating system's `fork`.
#
# ## Next
#
# Open `exercises/05_copy_on_write.ipynb`. Your table will carry four samples, a branch and a beam
# search. Lesson 06 asks who may run in the next step at all.
