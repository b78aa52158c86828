# %% [markdown]
# # Exercises 05 · Copy-on-write: fork, samples, beam search
#
# Four exercises. Lesson 05 (`lessons/05_copy_on_write.ipynb`) leads up to them. Replace each
# `raise NotImplementedError()` by your own code, then run the check below it. At the end your table
# serves several samples of one prompt, and your beam search runs on it. Stuck after three hints:
# `minipaged solution 05` shows the model answers.

# %% [markdown]
# ## 05.1 A table that forks
#
# Lesson 03's table, with three methods to write. Everything else in the class is given.
#
# - `fork()`: another table with the same entries, in a list of its own. It asks no pool: whoever
#   calls it calls `pool.share` as well.
# - `replace(entry, block_id)`: lets an entry lead to another block; returns the one it led to.
# - `write(position, pool)`: called right before the token at `position` is written. Positions come
#   one after the other, but a table may also go back to one that it has. Three things can be:
#   - The table has no block for this position yet: take one from the pool. Return `None`.
#   - It has one, and other tables hold it as well: take a new block from the pool, let it replace
#     the old one, give back the hold on the old one, and return `(old, new)`, the copy that is to
#     be made.
#   - It has one for itself: return `None`.
#
# `write` is all or nothing. If the pool has no block, its `MemoryError` goes on to the caller, and
# table and refcounts are as they were.
#
# The check uses `PlainPool` from `minipaged.course.fixtures`, with the methods of the pool that you
# wrote in lesson 02: `allocate(count)`, `share(block_ids)`, `free(block_ids)`,
# `refcount(block_id)`. It hands out the lowest free ids, so every case can be followed on paper.

# %% exercise="05.1"
from collections.abc import Sequence


class ForkingTable:
    """Which physical block holds each logical block of one request; it can be forked."""

    def __init__(self, block_size: int) -> None:
        """An empty table for blocks of block_size slots."""
        self.block_size, self.block_ids = block_size, []

    @property
    def num_slots(self) -> int:
        """Tokens for which the table has room."""
        return self.block_size * len(self.block_ids)

    def append_blocks(self, block_ids: Sequence[int]) -> None:
        """Room for more tokens at the end."""
        self.block_ids += block_ids

    def slot(self, position: int) -> int:
        """The slot of the token at `position`; IndexError if there is no room for it."""
        if not 0 <= position < self.num_slots:
            raise IndexError(f"position {position} has no slot: there are {self.num_slots}")
        block_id = self.block_ids[position // self.block_size]
        return block_id * self.block_size + position % self.block_size

    def slot_mapping(self, start: int, end: int) -> list[int]:
        """The slots of the positions start to end - 1."""
        return list(map(self.slot, range(start, end)))

    def release(self) -> list[int]:
        """Empty the table and return the blocks that it held, head first."""
        block_ids, self.block_ids = self.block_ids, []
        return block_ids

    def __len__(self) -> int:
        """The number of blocks."""
        return self.num_slots // self.block_size

    def fork(self) -> "ForkingTable":
        """A table of its own with the same entries."""
        ### BEGIN SOLUTION
        twin = ForkingTable(self.block_size)
        twin.append_blocks(self.block_ids)
        return twin
        ### END SOLUTION

    def replace(self, entry: int, block_id: int) -> int:
        """Let an entry lead to another block; returns the block that it led to."""
        ### BEGIN SOLUTION
        old, self.block_ids[entry] = self.block_ids[entry], block_id
        return old
        ### END SOLUTION

    def write(self, position, pool) -> tuple[int, int] | None:
        """Get ready to write the token at `position`: returns the copy to make, or None."""
        ### BEGIN SOLUTION
        entry = position // self.block_size
        if entry == len(self.block_ids):
            self.append_blocks(pool.allocate(1))
            return None
        old = self.block_ids[entry]
        if pool.refcount(old) == 1:
            return None
        (new,) = pool.allocate(1)
        self.replace(entry, new)
        pool.free([old])
        return old, new
        ### END SOLUTION


# %% check="05.1"
from minipaged.course.check import check

check("05.1", ForkingTable)

# %% [markdown]
# ## 05.2 What a fork costs
#
# A prompt of `prompt_len` tokens has been computed, and n samples share its blocks. Now each of
# them writes its first own token. How many blocks are copied while they do, and how many blocks are
# held afterwards, all samples together? Return both as a tuple: `(copies, blocks)`. prompt_len, n
# and block_size are at least 1.


# %% exercise="05.2"
def fork_cost(prompt_len: int, n: int, block_size: int) -> tuple[int, int]:
    """(copies, blocks held) once each of n samples of a prompt has written a token of its own."""
    ### BEGIN SOLUTION
    full, left_over = divmod(prompt_len, block_size)
    copies = n - 1 if left_over else 0
    return copies, full + n
    ### END SOLUTION


# %% check="05.2"
from minipaged.course.check import check

check("05.2", fork_cost)

# %% [markdown]
# ## 05.3 One step of beam search
#
# - `beams`: a list of `(tokens, total)`: the output tokens of a beam so far, and the sum of their
#   log-probabilities.
# - `logprobs`: for each beam a dict, token → log-probability: what it can go on with. The dict may
#   be empty.
# - `width`: how many continuations are kept.
#
# Return the best `width` continuations of all beams together, best first, each as
# `(parent, token, total)`: the index of its beam in `beams`, the new token, and the new sum. Of
# equal sums the one with the smaller parent comes first, then the one with the smaller token. If
# there are fewer than `width`, return them all. `beams` and `logprobs` stay as they are.


# %% exercise="05.3"
def beam_step(
    beams: list[tuple[list[int], float]], logprobs: list[dict[int, float]], width: int
) -> list[tuple[int, int, float]]:
    """The best `width` continuations of all beams, as (parent, token, total), best first."""
    ### BEGIN SOLUTION
    found = []
    for parent, (_, total) in enumerate(beams):
        for token, logprob in logprobs[parent].items():
            found.append((parent, token, total + logprob))
    found.sort(key=lambda one: (-one[2], one[0], one[1]))
    return found[:width]
    ### END SOLUTION


# %% check="05.3"
from minipaged.course.check import check

check("05.3", beam_step)

# %% [markdown]
# ## 05.4 Check yourself
#
# Return a dict with an answer for each letter. The block size is 16 in all of them but the last.
#
# - **a** A prompt of 50 tokens, 5 samples. How many blocks are held once each of them has written a
#   token of its own? (A number.)
# - **b** How many copies were made for that, and how many would it be with a prompt of 48 tokens?
#   (A list of two numbers.)
# - **c** Llama-3-8B keeps 131,072 bytes a token. How many MiB (2^20 bytes) do the copies for
#   the prompt of 50 tokens move? (A number.)
# - **d** Beam search, width 4. The new beams have the parents 2, 0, 2, 2. How many forks are
#   made, and how many beams are dropped? (A list of two numbers.)
# - **e** A prompt of 100 tokens, 4 samples of 50 outputs each. At the end, how many per cent of the
#   blocks does sharing save? (A number; the last output is never stored.)
# - **f** Tables A and B share block 7, and both write into it in the same step. A copies 7 to 9,
#   B writes in place. A faulty engine writes the tokens first and makes the copies afterwards.
#   Whose answer may come out wrong: `"A"`, `"B"`, `"both"` or `"nobody"`?
# - **g** A prompt of 101 tokens, 4 samples, and each writes a token of its own. How many slots do
#   the copies move, all together, with blocks of 4, of 16 and of 32? (A list of three numbers.)


# %% exercise="05.4"
def answers() -> dict[str, object]:
    """The answer to each question, by its letter."""
    ### BEGIN SOLUTION
    return {
        "a": 3 + 5,
        "b": [4, 0],
        "c": 4 * 16 * 131_072 / 2**20,
        "d": [2, 2],
        "e": 100 * 18 / 40,
        "f": "A",
        "g": [3 * 4, 3 * 16, 3 * 32],
    }
    ### END SOLUTION


# %% check="05.4"
from minipaged.course.check import check

check("05.4", answers)

# %% [markdown]
# ## Run it: write and read back
#
# Run the following once the checks have passed. First your `write` alone, over a memory that is a
# list: one entry a slot. Each of n tables writes tokens of its own, carries out the copies that
# your `write` asks for, and reads everything back. `mine` takes the pool of your lesson 02, or the
# reference's if there is none.

# %%
from minipaged.course.mine import mine

FreeQueue, BlockPool = mine("02.1"), mine("02.2")


class Memory:
    """A list of slots and a pool. `held` counts blocks, `copies` the copies made."""

    def __init__(self, block_size, num_blocks=64):
        self.block_size, self.pool = block_size, BlockPool(num_blocks, FreeQueue)
        self.slots, self.copies = [None] * (num_blocks * block_size), 0

    @property
    def held(self):
        return self.pool.num_blocks - self.pool.num_free

    def put(self, table, position, token):
        copy = table.write(position, self.pool)
        if copy is not None:
            old, new = (block * self.block_size for block in copy)
            size = self.block_size
            self.slots[new : new + size] = self.slots[old : old + size]
            self.copies += 1
        self.slots[table.slot(position)] = token

    def fork(self, table):
        self.pool.share(table.block_ids)
        return table.fork()

    def drop(self, table):
        self.pool.free(table.release())

    def read(self, table, end):
        return [self.slots[slot] for slot in table.slot_mapping(0, end)]


def sample(table_class, prompt_len, n, outputs, block_size=16):
    """The memory after n samples, and which of them read what they did not write."""
    memory = Memory(block_size)
    tables = [table_class(block_size)]
    prompt = [f"prompt {position}" for position in range(prompt_len)]
    for position, token in enumerate(prompt):
        memory.put(tables[0], position, token)
    tables += [memory.fork(tables[0]) for _ in range(n - 1)]
    for k in range(outputs):
        for index, table in enumerate(tables):
            memory.put(table, prompt_len + k, f"sample {index}, output {k}")
    wrong = []
    for index, table in enumerate(tables):
        written = prompt + [f"sample {index}, output {k}" for k in range(outputs)]
        if memory.read(table, prompt_len + outputs) != written:
            wrong.append(index)
    return memory, wrong


for prompt_len in (38, 47, 48, 49):
    memory, wrong = sample(ForkingTable, prompt_len, n=4, outputs=1)
    counted = (memory.copies, memory.held)
    print(f"prompt {prompt_len}: copies and blocks {counted}, misread by {wrong or 'nobody'}")
    assert counted == fork_cost(prompt_len, 4, 16)

# %% [markdown]
# The counts are those of your `fork_cost`. Now a fault: a `write` that skips the copy. Which
# samples will read something wrong, and what?


# %%
class Faulty(ForkingTable):
    """Forks as yours does; the fork has the same fault."""

    def fork(self):
        twin = super().fork()
        twin.__class__ = type(self)
        return twin


class Skips(Faulty):
    """Grows as it should, and never copies."""

    def write(self, position, pool):
        if position == self.num_slots:
            return super().write(position, pool)
        return None


for table_class in (ForkingTable, Skips):
    memory, wrong = sample(table_class, prompt_len=38, n=4, outputs=12)
    print(f"{table_class.__name__:12} {memory.copies} copies, misread by samples {wrong}")

# %% [markdown]
# The last sample to write is never wrong: what it wrote, nobody wrote over. With 12 outputs the
# others read the last one's first ten tokens as their own, up to the end of the shared block.
#
# ## The engine on your table
#
# The engine's manager calls your `fork` and your `replace`; the decision whether to copy is its
# own. Four samples of one prompt over the ledger, and after five steps a branch of the first of
# them.

# %%
from dataclasses import replace

from minipaged import Components, EngineConfig, SamplingParams
from minipaged.engine import Engine
from minipaged.exec.sim_exec import SimExecutor


def serve(components, prompt_len, check=True):
    """The tokens of every sequence, how many blocks were copied, and what was raised."""
    config = EngineConfig.of(block_size=16, num_blocks=64, max_model_len=128)
    engine = Engine(config, SimExecutor(config.cache), components=components)
    params = SamplingParams(n=4, temperature=1.0, seed=7, max_tokens=14, ignore_eos=True)
    engine.add_request("A", list(range(prompt_len)), params)
    tokens, steps, error = {}, 0, None
    while engine.has_unfinished_requests() and error is None:
        try:
            for output in engine.step():
                key = f"{output.request_id} {output.sample_index}"
                tokens.setdefault(key, []).extend(output.new_token_ids)
            steps += 1
            if steps == 5:
                engine.fork("A", "branch", replace(params, n=1, seed=8))
            if check:
                engine.check()
        except Exception as raised:
            error = f"step {steps}: {type(raised).__name__}: {raised}"
    return tokens, engine.metrics.num_copied_blocks_total, error


yours = replace(Components(), free_queue=FreeQueue, block_pool=BlockPool, block_table=ForkingTable)
for prompt_len in (38, 44, 48):
    tokens, copies, _ = serve(yours, prompt_len)
    same = tokens == serve(Components(), prompt_len)[0]
    print(f"prompt {prompt_len}: {copies} copies, the same tokens as the reference: {same}")

# %% [markdown]
# Prompt 38 has a copy for three of the samples, and one for the branch. With 44 tokens the branch
# starts after 48 computed ones, on a border, and with 48 the samples start on one.
#
# Two faults in the engine. `SharedList` forks without a list of its own. `Forgetful` has a
# `replace` that says what it should and changes nothing: the copy is made, and the token goes where
# it would have gone without it. Who notices, and what comes out?


# %%
class SharedList(Faulty):
    def fork(self):
        twin = super().fork()
        twin.block_ids = self.block_ids
        return twin


class Forgetful(Faulty):
    def replace(self, entry, block_id):
        return self.block_ids[entry]


right = serve(yours, 38)[0]
for fault in (SharedList, Forgetful):
    parts = replace(yours, block_table=fault)
    came, _, error = serve(parts, 38, check=False)
    differ = [name for name in came if came[name] != right[name][: len(came[name])]]
    print(f"{fault.__name__}: other tokens for {differ or 'nobody'}")
    print(f"  without checks {error}")
    print(f"  with checks    {serve(parts, 38)[2].split(';')[0]}")

# %% [markdown]
# Three samples come out wrong, and so does the branch, which goes on from one of them. Sample 3,
# the last to write, is right both times. The checks find the fault in the very step of the first
# write. Without them nothing is noticed until the requests end and a block is freed once too often,
# long after wrong answers were sent out. (`Skips` would have no effect here, as the engine does not
# ask your `write`.)
#
# ## Three answers from the tutor
#
# The tutor is very sure of its answers, so it takes a high temperature to make the samples differ.
# Each token is drawn among the three likeliest (`top_k`), and the answers are cut off after 90.

# %%
from minipaged import LLM

size = {"block_size": 16, "num_blocks": 64}
params = SamplingParams(n=3, temperature=3.0, top_k=3, seed=1, max_tokens=90)
llm = LLM("tutor", components=yours, **size)
answer = llm.generate("What is a block table?", params)[0]
for number, one in enumerate(answer.samples):
    print(number, one.text)
reference = LLM("tutor", **size).generate("What is a block table?", params)[0]
same = [one.text for one in answer.samples] == [one.text for one in reference.samples]
print(f"{llm.engine.metrics.num_copied_blocks_total} copies; same texts as the reference: {same}")

# %% [markdown]
# ## Your beam search on your table
#
# `beam_step` decides, tables follow: a parent's first continuation keeps its table, every further
# one gets a fork, and whoever is nobody's parent is dropped. The model is made up: after every text
# four tokens with the probabilities 0.4, 0.3, 0.2 and 0.1, in an order that depends on the text.

# %%
import math
import random


def odds(tokens):
    order = random.Random(str(tokens)).sample(range(4), 4)
    return {token: math.log(p) for token, p in zip(order, (0.4, 0.3, 0.2, 0.1), strict=True)}


def follow(memory, tables, parents):
    """The tables of the next beams, and how many were forked and dropped."""
    following, forks = [], 0
    for place, parent in enumerate(parents):
        is_fork = parent in parents[:place]
        following.append(memory.fork(tables[parent]) if is_fork else tables[parent])
        forks += is_fork
    dropped = [table for number, table in enumerate(tables) if number not in parents]
    for table in dropped:
        memory.drop(table)
    return following, forks, len(dropped)


def search(width, block_size, prompt_len=38, steps=60):
    memory = Memory(block_size, num_blocks=1024)
    beams, tables = [([], 0.0)], [ForkingTable(block_size)]
    for position in range(prompt_len):
        memory.put(tables[0], position, "prompt")
    forks = drops = held = alone = 0
    for position in range(prompt_len, prompt_len + steps):
        chosen = beam_step(beams, [odds(tokens) for tokens, _ in beams], width)
        tables, new, gone = follow(memory, tables, [parent for parent, _, _ in chosen])
        beams = [([*beams[parent][0], token], total) for parent, token, total in chosen]
        for table, (tokens, _) in zip(tables, beams, strict=True):
            memory.put(table, position, tokens[-1])
        forks, drops = forks + new, drops + gone
        held, alone = held + memory.held, alone + sum(map(len, tables))
    read = [memory.read(table, prompt_len + steps)[prompt_len:] for table in tables]
    assert read == [tokens for tokens, _ in beams]
    return forks, drops, memory.copies, 1 - held / alone


print("block size   forks   drops   copies   slots copied   saved")
for block_size in (1, 4, 16, 64):
    forks, drops, copies, saved = search(4, block_size)
    slots = copies * block_size
    print(f"{block_size:10} {forks:7} {drops:7} {copies:8} {slots:14} {saved:7.1%}")

# %% [markdown]
# Every beam reads back its own tokens. There are 3 forks more than drops, because the first step
# makes four beams of one. With block size 1 no copy is ever needed. Larger blocks are copied more
# often and cost more each time, and save less.
#
# Last the engine's own beam search, on your table, pool and queue:

# %%
from minipaged import BeamSearchParams

wide = BeamSearchParams(beam_width=4, max_tokens=60)
llm = LLM("tutor", components=yours, **size)
beams = llm.beam_search("Tell me about cats", wide)[0]
for beam in beams:
    print(f"{beam.cumulative_logprob:7.2f}  {beam.text}")
reference = LLM("tutor", **size).beam_search("Tell me about cats", wide)[0]
same = [beam.text for beam in beams] == [beam.text for beam in reference]
print(f"{llm.engine.metrics.num_copied_blocks_total} copies; same beams as the reference: {same}")

# %% [markdown]
# ## An open question
#
# Compare this fork with the operating system's. What is the same, and what is different: who
# notices that somebody writes, when is that known, and what happens if there is no memory for the
# copy? Why is a whole block copied, when only the tokens in front are needed? And what would become
# of all this with block size 1? A few sentences will do.
#
# There are no points for this one. Write your answer into the next cell; `minipaged solution 05`
# then shows the model answer.

# %% [markdown] open=true
# ### BEGIN SOLUTION
# **The same.** A fork copies the table and nothing else. What is shared is counted and may be read
# by all. The first write of each holder but the last costs a copy of one page, or block, and the
# writer's table then leads to the copy.
#
# **Different.** In the operating system the hardware notices: the page is marked read-only, the
# write is stopped in the middle, and the kernel makes the copy while the process waits. Nobody knew
# before. Here nothing protects a block but the engine's own care. In return it knows in advance:
# the scheduler decides which tokens a step computes, so it can allocate, list all copies, and have
# them made before the first write. A process may write to any page at any time; a request writes at
# its end only, so at most one block of each request is in question. If memory runs out, an
# operating system that promised too much has to end a process. The engine finds out while it
# plans. It preempts a request, whose tokens it can compute again.
#
# **Whole blocks.** Copying only the filled part would be right, too. But a block is one stretch of
# memory per layer (or two, keys and values), copied in one go with the same size every time. The
# whole is cheaper than to work out what of it counts, and the rest of the slots are not read before
# they are written.
#
# **Block size 1.** Every block is full once it is written, and nobody writes into it again. So
# nothing is ever copied: a fork needs refcounts only, and every shared token stays shared. The
# price is a table with an entry a token, and as many refcounts to raise at each fork: 16 times as
# many as with blocks of 16.
# ### END SOLUTION
