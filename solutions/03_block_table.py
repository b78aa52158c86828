# %% [markdown]
# # Exercises 03 · The block table and address translation
#
# Four exercises. Lesson 03 (`lessons/03_block_table.ipynb`) leads up to them. Replace each
# `raise NotImplementedError()` by your own code, then run the check below it. At the end the engine
# runs on your block table, and the tutor reads its keys and values through your code.

# %% [markdown]
# ## 03.1 The block table
#
# Write the class `BlockTable`: the table of one request. It is made with the block size and empty
# at first.
#
# - `block_ids`: a list, the physical block of each logical block, in order. The engine reads it.
# - `num_slots`: tokens for which there is room.
# - `append_blocks(block_ids)`: more blocks at the end. The list that was passed belongs to the
#   caller, who may change it afterwards.
# - `slot(position)`: where in the pool the token at that position is. `IndexError` for a position
#   that has no slot, negative ones included.
# - `slot_mapping(start, end)`: a list, the slots of the positions `start` to `end - 1`.
#   `IndexError` if one of them has none.
# - `release()`: returns the blocks, head first. The table is empty afterwards and can be used
#   again.
# - `len(table)`: the number of blocks.
#
# An example: block size 16, blocks `[7, 91, 142]`, position 37: slot 2277.

# %% exercise="03.1"
from collections.abc import Sequence


class BlockTable:
    """Which physical block holds each logical block of one request."""

    def __init__(self, block_size: int) -> None:
        """An empty table for blocks of block_size slots."""
        ### BEGIN SOLUTION
        self.block_size = block_size
        self.block_ids: list[int] = []
        ### END SOLUTION

    @property
    def num_slots(self) -> int:
        """Tokens for which the table has room."""
        ### BEGIN SOLUTION
        return len(self.block_ids) * self.block_size
        ### END SOLUTION

    def append_blocks(self, block_ids: Sequence[int]) -> None:
        """Room for more tokens at the end."""
        ### BEGIN SOLUTION
        self.block_ids.extend(block_ids)
        ### END SOLUTION

    def slot(self, position: int) -> int:
        """The slot of the token at `position`; IndexError if there is no room for it."""
        ### BEGIN SOLUTION
        logical, offset = divmod(position, self.block_size)
        if not 0 <= logical < len(self.block_ids):
            raise IndexError(f"position {position} is outside the table's {self.num_slots} slots")
        return self.block_ids[logical] * self.block_size + offset
        ### END SOLUTION

    def slot_mapping(self, start: int, end: int) -> list[int]:
        """The slots of the positions start to end - 1; IndexError if one of them has none."""
        ### BEGIN SOLUTION
        return [self.slot(position) for position in range(start, end)]
        ### END SOLUTION

    def release(self) -> list[int]:
        """Empty the table and return the blocks that it held, head first."""
        ### BEGIN SOLUTION
        released, self.block_ids = self.block_ids, []
        return released
        ### END SOLUTION

    def __len__(self) -> int:
        """The number of blocks."""
        ### BEGIN SOLUTION
        return len(self.block_ids)
        ### END SOLUTION


# %% check="03.1"
from minipaged.course.check import check

check("03.1", BlockTable)

# %% [markdown]
# ## 03.2 Writing to the pool
#
# A step has computed the keys of some tokens. Write them into their slots, in place:
#
# - `pool`: `[num_blocks, block_size, num_kv_heads, head_dim]`.
# - `slot_mapping`: int64 `[tokens]`; slot s is place `s % block_size` of block `s // block_size`.
#   No slot comes twice.
# - `new`: `[tokens, num_kv_heads, head_dim]`, with the dtype of the pool; row i belongs in slot
#   `slot_mapping[i]`.
#
# Nothing is returned, and no other slot changes. There may be no token at all. A loop over tokens
# is fine; torch can also do it in one assignment.

# %% exercise="03.2"
import torch


def write_kv(pool: torch.Tensor, slot_mapping: torch.Tensor, new: torch.Tensor) -> None:
    """Store row i of `new` in slot slot_mapping[i] of the pool, in place."""
    ### BEGIN SOLUTION
    block_size = pool.shape[1]
    pool[slot_mapping // block_size, slot_mapping % block_size] = new
    ### END SOLUTION


# %% check="03.2"
from minipaged.course.check import check

check("03.2", write_kv)

# %% [markdown]
# ## 03.3 Reading from the pool
#
# The other direction: the keys of the first `num_tokens` tokens of a request, one row a token, in
# order of position.
#
# - `pool`: as above. Slots that no token was written to may hold NaN; none of them may come back.
# - `block_table`: int64 or int32 `[entries]`. There may be more entries than the tokens need; those
#   mean nothing and need not be blocks of the pool.
# - The result: `[num_tokens, num_kv_heads, head_dim]`, with the dtype of the pool.

# %% exercise="03.3"
import torch


def gather_kv(pool: torch.Tensor, block_table: torch.Tensor, num_tokens: int) -> torch.Tensor:
    """The rows of the tokens at positions 0 to num_tokens - 1."""
    ### BEGIN SOLUTION
    block_size = pool.shape[1]
    positions = torch.arange(num_tokens, device=pool.device)
    blocks = block_table[positions // block_size].long()
    return pool[blocks, positions % block_size]
    ### END SOLUTION


# %% check="03.3"
from minipaged.course.check import check

check("03.3", gather_kv)

# %% [markdown]
# ## 03.4 Check yourself
#
# Return a dict with an answer for each letter. Compute with pencil and paper first; then you may
# let Python do it.
#
# - **a** Block size 32, table `[12, 5, 88, 3]`. Which slot has the token at position 70? (An int.)
# - **b** Block size 16, table `[7, 91, 142]`. Which position does the token in slot 1460 have? (An
#   int.)
# - **c** A request of 6,000 tokens, block size 32, 4 bytes an entry. How many bytes has its table?
#   (An int.)
# - **d** Block size 16. A request with the positions 0 to 46 gets a token at position 47, and then
#   one at position 48. How many entries of its table are new or change at the first, how many at
#   the second? (A list of two ints.)
# - **e** Which of these words of an operating system's paging has no counterpart in this lesson?
#   `"page"`, `"frame"`, `"page table"`, `"page fault"`, `"offset"`, `"TLB"`. (A str.)
# - **f** Llama-3-70B has 64 query heads, 8 KV heads, head_dim 128 and 80 layers, with numbers of 16
#   bits. How many bytes of keys and values are in one block of 32 slots, in one layer? (An int.)
# - **g** A request grows token by token to 480 tokens. How many blocks does it take from the pool
#   with block size 1, how many with block size 16? (A list of two ints.)
# - **h** A request has 20 tokens. How many of its slots are empty with blocks of 4, of 16 and of
#   128? (A list of three ints.)
# - **i** The keys of a layer are a pool `[200, 16, 8, 128]`: blocks, slots, KV heads, head_dim. In
#   memory it is one long row of numbers, in which the last index runs fastest. The table is `[7,
#   91, 142]`. At which place of the row, counted from 0, is number 10 of KV head 3 of the key at
#   position 37? (Numbers, heads and positions are counted from 0, too. An int.)


# %% exercise="03.4"
def answers() -> dict[str, object]:
    """The answer to each question, by its letter."""
    ### BEGIN SOLUTION
    return {
        "a": 88 * 32 + 70 % 32,
        "b": 1 * 16 + 1460 % 16,
        "c": -(-6000 // 32) * 4,
        "d": [0, 1],
        "e": "TLB",
        "f": 2 * 8 * 128 * 2 * 32,
        "g": [480, 30],
        "h": [0, 32 - 20, 128 - 20],
        "i": ((142 * 16 + 5) * 8 + 3) * 128 + 10,
    }
    ### END SOLUTION


# %% check="03.4"
from minipaged.course.check import check

check("03.4", answers)

# %% [markdown]
# ## Run it: the engine on your table
#
# Run this once the checks have passed. First the *ledger*: the real engine with its real
# scheduler, but in place of a model something that stores a number for each token in the token's
# slot, reads all earlier ones again through the block table, and makes the next token from what it
# read. A table that leads anywhere wrong gives other tokens. `mine` takes the queue and the pool
# that you wrote in lesson 02, or the reference's if there are none.

# %%
from dataclasses import replace

from minipaged.components import Components
from minipaged.course.mine import mine
from minipaged.simulate import simulate

FreeQueue, BlockPool = mine("02.1"), mine("02.2")
parts = replace(Components(), free_queue=FreeQueue, block_pool=BlockPool, block_table=BlockTable)
workload = [(20, 9), (40, 12), (30, 60), (55, 40), (33, 40)]
options = {"block_size": 16, "num_blocks": 20, "max_num_seqs": 3}


def tokens(trace):
    """The output tokens of each request."""
    out = {}
    for record in trace.steps:
        for work in record.work:
            out.setdefault(work.request_id, []).extend(work.sampled)
    return out


right = tokens(simulate(workload, **options))
yours = tokens(simulate(workload, components=parts, **options))
print({name: len(row) for name, row in yours.items()})
print("same tokens as the reference:", yours == right)

# %% [markdown]
# Now real text. The tutor answers on your table, queue and pool, and the engine checks all its
# bookkeeping after every step.

# %%
from minipaged import LLM, SamplingParams

questions = ["What is a block table?", "What is a slot?", "What is EOS?"]
size = {"block_size": 16, "num_blocks": 48}
reference = [answer.text for answer in LLM("tutor", **size).generate(questions)]


def serve(components, questions=questions):
    """Answer the questions, with every invariant checked after each step."""
    llm = LLM("tutor", components=components, **size)
    for number, question in enumerate(questions):
        llm.engine.add_request(str(number), question, SamplingParams(max_tokens=400))
    texts = [""] * len(questions)
    while llm.engine.has_unfinished_requests():
        for output in llm.engine.step():
            texts[int(output.request_id)] += output.new_text
        llm.engine.check()
    return texts


texts = serve(parts)
print(texts[0])
print("same texts as the reference:", texts == reference)

# %% [markdown]
# Where was your `slot` in this? The part that runs the model gets a copy of the entries and does
# the same sum for all tokens of a step at once. Your `block_ids` are what it works with. Your
# `slot` is asked by `check`: for the first token of every block it must agree with the formula.
#
# ## Two faults
#
# The first table keeps its blocks sorted, to look tidy. The second counts positions from 1. Which
# of the two gives wrong tokens, and which one does the check find? Guess before you run the cell.

# %%
from minipaged.cache.manager import InvariantError


class Sorted(BlockTable):
    """Puts its blocks into ascending order."""

    def append_blocks(self, block_ids):
        super().append_blocks(block_ids)
        self.block_ids.sort()


class FromOne(BlockTable):
    """Takes the first token's position for 1."""

    def slot(self, position):
        return super().slot(max(position - 1, 0))


for fault in (Sorted, FromOne):
    wrong = replace(parts, block_table=fault)
    got = tokens(simulate(workload, components=wrong, **options))
    differ = [name for name in right if got[name] != right[name]]
    print(f"{fault.__name__}: the ledger gives other tokens for {differ or 'nobody'}")
    try:
        same = serve(wrong) == reference
        print(f"{fault.__name__}: every check passed; same texts: {same}")
    except InvariantError as error:
        print(f"{fault.__name__}: {str(error).partition('; ')[0]}")

# %% [markdown]
# `Sorted` is consistent with itself, so no check of the bookkeeping can object. But entries that
# were sent once are not sent again. When C's `[5, 6, 7]` gets block 0, the sorted table reads
# `[0, 5, 6, 7]`, and what is sent is its fourth entry. The part that runs the model now has
# `[5, 6, 7, 7]`, so token 48 is written over token 32. As long as no block is used a second time,
# new ones have higher numbers, and the sorting changes nothing.
#
# `FromOne` harms nobody today, because nobody but `check` asks its `slot`. That is why `check`
# asks.
#
# ## Your gather in the attention
#
# `Components.attention` is the function that reads the pool: `q` holds the queries of all tokens of
# the step, `meta` says which belong to whom. This one serves one request after the other. It reads
# the keys and values with your `gather_kv`. To have your `write_kv` and your `slot_mapping` at work
# as well, it then moves them: into a pool of its own, in blocks drawn at random, and reads them
# back from there. What torch computes from it must not notice. Two of the questions are enough,
# because a loop over tokens takes its time here.

# %%
import random

from torch.nn.functional import scaled_dot_product_attention

draw = random.Random(0)


def moved(rows):
    """The same rows, after a stay in a pool of scattered blocks."""
    table = BlockTable(4)
    num_blocks = 2 * len(rows) // 4 + 2
    table.append_blocks(draw.sample(range(num_blocks), -(-len(rows) // 4)))
    pool = rows.new_full((num_blocks, 4, *rows.shape[1:]), torch.nan)
    write_kv(pool, torch.tensor(table.slot_mapping(0, len(rows))), rows)
    return gather_kv(pool, torch.tensor(table.block_ids), len(rows))


def attention(q, k_pool, v_pool, meta):
    """What each query reads from the keys and values up to its own position."""
    out = torch.zeros_like(q)
    group = q.shape[1] // k_pool.shape[2]  # query heads for each KV head
    starts = meta.query_start_loc.tolist()
    for row, keys in enumerate(meta.seq_lens.tolist()):
        begin, end = starts[row], starts[row + 1]
        k, v = (
            moved(gather_kv(pool, meta.block_tables[row], keys)).repeat_interleave(group, dim=1)
            for pool in (k_pool, v_pool)
        )
        positions = torch.arange(keys - (end - begin), keys)
        read = scaled_dot_product_attention(
            q[begin:end].transpose(0, 1),
            k.transpose(0, 1),
            v.transpose(0, 1),
            attn_mask=torch.arange(keys) <= positions[:, None],
        )
        out[begin:end] = read.transpose(0, 1)
    return out


texts = serve(replace(parts, attention=attention), questions[1:])
print(*texts, sep="\n")
print("same texts as the reference:", texts == reference[1:])

# %% [markdown]
# ## An open question
#
# The tables of an operating system have several levels: the first table names further tables, and
# only the last names frames. A block table has one level. And it has an entry for every 16 tokens;
# with a block size of 1 there would be no empty slots at all. Why one level, and why not a block
# size of 1? And which entries could a model do without whose attention only looks back 1,024
# tokens? A few sentences will do.
#
# There are no points for this one. Write your answer into the next cell; `minipaged solution 03`
# then shows the model answer.

# %% [markdown] open=true
# ### BEGIN SOLUTION
# **One level.** Several levels save memory where an address space is huge and mostly empty: a
# process may use a few pages near 0 and a few near 2^47, and a flat table would need entries for
# all between. The positions of a request are dense: 0, 1, 2, … up to its length. A flat table has
# no gap to save, and 4,096 tokens need 1 KiB of it. A second level would add a look-up that depends
# on the one before it, for every block.
#
# **Block size 1.** It is possible: SGLang's tables have an entry for every token. It saves on
# average half a block of empty slots a request, and a shared prefix can end at any token. It costs
# 16 times as many entries, allocations and look-ups, and one row of a token is all that lies
# together in memory. The larger the block, the fewer entries and the longer the pieces; the more
# slots stay empty.
#
# **A sliding window.** Keys further back than 1,024 tokens are never read again. Logical blocks
# that lie before the window as a whole can go back to the pool. The positions go on, so the
# logical block numbers must as well: the table keeps a marker in those entries (or remembers how
# many it dropped), and at most 1,024 // 16 + 1 = 65 real ones are held at a time.
# ### END SOLUTION
