# %% [markdown]
# # 03 · The block table and address translation
#
# **The question.** The pool of lesson 02 hands out whatever blocks are free. So the keys and values
# of one request lie in pieces all over the memory, and attention wants those of token 37. Where are
# they?
#
# You will find them by hand, then write the class that finds them, then put keys into a real pool
# and read them back through your own code. Allow 60 minutes with the exercises.

# %% [markdown]
# ## A request in pieces
#
# Five requests, at most three of them at a time, in a pool of 20 blocks of 16 slots. Each pair is a
# prompt's length and an answer's length. The slider moves through the steps; step 20 is stored.

# %%
from minipaged.simulate import simulate
from minipaged.viz.widgets import step_through

workload = [(20, 9), (40, 12), (30, 60), (55, 40), (33, 40)]
trace = simulate(workload, block_size=16, num_blocks=20, max_num_seqs=3)
step_through(trace, step=20)

# %% [markdown]
# Look at C. It has 50 tokens in the blocks `[5, 6, 7, 0]`. When it needed a fourth block, block 0
# was the next on the free queue: it had come back from a request that was done. So C's last two
# tokens stand *before* its first in the memory. That list is C's *block table*, and it is all that
# the engine knows about where C is:
#
# - A *logical block* is a piece of the request: tokens 0–15 are logical block 0, tokens 16–31
#   logical block 1, and so on, without a gap.
# - A *physical block* is a piece of the pool. It has a number, and nothing else about it matters.
# - Entry i of the block table is the physical block that holds logical block i.
#
# ## Where is token 37?
#
# Take another request. The block size is 16, and its table reads `[7, 91, 142]`. Before reading on,
# work it out: which entry of the table, and which place inside that block?
#
# Logical block 0 has 16 tokens and logical block 1 as many. `37 // 16 = 2` blocks are over before
# token 37 comes, so it is in logical block 2: the third entry, physical block 142. Of the 37 tokens
# in front of it, 32 fill those two blocks. `37 % 16 = 5` are left, so it stands behind five others:
# offset 5, the sixth place.
#
# Seen as one long row, the pool is a row of slots: block 0 has the slots 0–15, block 1 the slots
# 16–31, and block 142 begins at `142 * 16`. Let the cell do the sum.

# %%
block_size, block_table, position = 16, [7, 91, 142], 37

logical = position // block_size
offset = position % block_size
physical = block_table[logical]
print(f"logical block {logical}, offset {offset}, physical block {physical}")
print(f"slot {physical} * {block_size} + {offset} = {physical * block_size + offset}")

# %% [markdown]
# That is all of it:
#
#     slot = block_table[position // block_size] * block_size + position % block_size
#
# The offset is the same in the request and in memory; only the block is exchanged. From the slot to
# bytes it is one more multiplication, by the size of one token's row.
#
# > **A claim, recomputed.** *A token's place in the pool follows from its position and the block
# > table by one division.* For token 37 with block size 16 and 142 as the third entry: logical
# > block 2, offset 5, slot 2277. So it is, and the cost does not grow with the length of the
# > request.
#
# Three things should bother you. *What is token 48 here?* It has no place. The table has three
# entries, room for the positions 0–47, and asking for another must be an error, not some number.
# *And token -1?* Python would answer: `-1 // 16` is -1, and `block_table[-1]` is the last entry. A
# table has to refuse that by itself. *And who says that block 142 is still ours?* The pool does.
# Our table counts as a holder, so the block's refcount is at least 1, and it is not handed out
# again.
#
# ## You know this from the operating system
#
# A process sees addresses without a gap, its memory is in pieces, and a *page table* leads from one
# to the other. It is the same division:
#
# | operating system | here |
# |---|---|
# | process | request |
# | page (often 4 KiB) | logical block (16 tokens) |
# | virtual page number | logical block number |
# | frame: a piece of physical memory | physical block |
# | page table | block table |
# | offset inside the page | offset inside the block |
# | page fault: a page is touched that has no frame yet | the last block is full: allocate another |
# | **without a counterpart here** | |
# | TLB: the processor's cache of recent translations | the table itself is read |
# | protection bits: read, write, execute | no code but the engine's own reaches the pool |
#
# There are two differences. First, there the translation is hardware and happens at every access;
# here it is a line of code, asked once for a block of 16 tokens and the same for all layers, which
# is why no cache of it is needed. Second, nothing has to wait for a fault: the scheduler knows
# before each step which tokens it will compute, and gets their blocks in advance. Frames that two processes share have their counterpart
# as well, in lesson 05.
#
# ## The slots of a step
#
# A step computes tokens of several requests at once, and all their keys and values must be stored.
# So the engine needs a list with a slot for every token of the step: the *slot mapping*. Step 9 is
# a mixed one. B and C compute one token each, and D's whole prompt comes in. B's token is at
# position 48. Which slot does it go to? B's table is printed below; work it out before you look to
# the right.

# %%
from itertools import pairwise

from minipaged.cache.table import BlockTable


def runs(slots):
    """Numbers as text: neighbours as one stretch."""
    cuts = [0, *(i for i, (a, b) in enumerate(pairwise(slots), 1) if b != a + 1), len(slots)]
    parts = [(slots[a], slots[b - 1]) for a, b in pairwise(cuts)]
    return ", ".join(f"{a}" if a == b else f"{a}–{b}" for a, b in parts)


for work in trace.steps[9].work:
    table = BlockTable(block_size)
    table.append_blocks(trace.steps[9].tables[work.request_id])
    start, end = work.start_position, work.start_position + work.num_tokens
    slots = table.slot_mapping(start, end)
    print(
        f"{work.request_id}  table {table.block_ids!s:14} positions {runs(range(start, end)):5} "
        f"-> slots {runs(slots)}"
    )

# %% [markdown]
# B has just got block 0, and position 48 is the first of its logical block 3: slot 0. D's 55 tokens
# go to two stretches, because its first block was left over from somebody else and the others
# happened to be neighbours.
#
# And the way back? Slot 2277 lies in block 2277 // 16 = 142, at offset 5. The table has 142 as its
# entry 2, so the position is 2 * 16 + 5 = 37.
#
# Count the entries, too. B's table got a fourth one in this step; C's stayed as it was. A table changes at one
# token in 16, so the scheduler does not send whole tables to the model every step: it sends the new
# entries.
#
# **Exercise 03.1** is the class behind this: `BlockTable`, with `slot`, `slot_mapping`,
# `append_blocks` and `release`, which hands all blocks back when a request is over.
#
# *Is `slot` called for each token then?* Not by the part that runs the model. That part gets a copy
# of the entries and works the formula out for a whole step in one go, on tensors. But the entries
# are those of *your* `block_ids`. And `KVManager.check`, with which the engine's bookkeeper compares
# all that it has noted, asks your `slot` for the first token of every block.
#
# ## Into the pool and back
#
# Now with real numbers. One layer's keys are a tensor `[num_blocks, block_size, num_kv_heads,
# head_dim]`, its values another; both are made once, when the engine starts, and only their
# contents change. (On a GPU the numbers inside a block are often laid out in another order, which
# lesson 11 explains; block and offset stay what they are.) Here is a small one of 200 blocks. It
# holds random numbers everywhere: keys of other requests. Ours has 40 tokens, and the table `[7,
# 91, 142]`. How many slots of block 142 will stay as they are?

# %%
import torch

from minipaged.kernels.reference import write_kv

torch.manual_seed(0)
num_blocks, heads, head_dim, num_tokens = 200, 2, 8, 40
k_pool, v_pool = torch.randn(2, num_blocks, block_size, heads, head_dim)
k, v = torch.randn(2, num_tokens, heads, head_dim)

table = BlockTable(block_size)
table.append_blocks([7, 91, 142])
slots = table.slot_mapping(0, num_tokens)
write_kv(k, v, k_pool, v_pool, torch.tensor(slots))

print("in block 142, offset 5, is the key of token 37:", torch.equal(k_pool[142, 5], k[37]))
print("slots of block 142 that stayed as they were:", table.num_slots - num_tokens)

# %% [markdown]
# Eight: 48 slots, 40 tokens. Reading back is the same walk the other way round. This cell takes it
# slot by slot:


# %%
def read_back(pool, block_ids):
    """The rows of our 40 tokens, in order of position."""
    path = BlockTable(block_size)
    path.append_blocks(block_ids)
    rows = pool.view(-1, heads, head_dim)  # the pool as one long row of slots, not copied
    return torch.stack([rows[slot] for slot in path.slot_mapping(0, num_tokens)])


print("every bit came back:", torch.equal(read_back(k_pool, [7, 91, 142]), k))

# %% [markdown]
# In **exercise 03.2** you write `write_kv` for one pool, in **03.3** `gather_kv`, which reads. Both
# can be a loop like this one; torch can also take a whole tensor of blocks and a whole tensor of
# offsets at once. Mind the eight slots: a slot nobody wrote to holds what was there before, or NaN,
# "not a number", which spoils every sum that it enters. `gather_kv` must not return it.
#
# ## Does attention notice?
#
# Shuffle the whole pool: every block moves to another place. If the table moves along, nothing may
# change. What attention does for the last token: its *query*, a row of numbers like a key, is
# compared with every key (multiplied number by number and added up, then divided by the root of
# `head_dim`, so that long rows do not give larger results); the results become weights that add up
# to 1 (`softmax`); and what comes out is the mean of the values with those weights. `einsum` does
# each of the two sums for all heads at once: its text names the axes, and an axis that is missing
# behind the arrow is summed over.


# %%
def attend(q, k, v):
    """What a query [heads, head_dim] reads from k and v [tokens, heads, head_dim]."""
    # h: heads, t: tokens, d: the numbers of one head
    scores = torch.einsum("hd,thd->ht", q, k) / head_dim**0.5
    return torch.einsum("ht,thd->hd", scores.softmax(dim=1), v)


q = torch.randn(heads, head_dim)
contiguous = attend(q, k, v)  # keys and values that never were in a pool

order = torch.randperm(num_blocks)  # new block i is the old block order[i]
shuffled = [int((order == block).nonzero()) for block in table.block_ids]
k2, v2 = k_pool[order], v_pool[order]
k_read, v_read = read_back(k2, shuffled), read_back(v2, shuffled)

print("table before:", table.block_ids, " after:", shuffled)
print("keys read the same: ", torch.equal(k_read, k))
print("attention the same: ", torch.equal(attend(q, k_read, v_read), contiguous))

# %% [markdown]
# Not nearly the same: the same, bit for bit. That is no accident. The gathered rows are the same
# bits in the same order, and from there on the same operations run on them. Attention code that
# reads the blocks where they lie adds up in another order; then the results are equal up to
# rounding, and no more can be asked. Lesson 04 comes to that.
#
# And if somebody forgets the table? Read the first 40 slots of the pool, and read the right blocks
# in the wrong order:

# %%
rows = k_pool.view(-1, heads, head_dim)[:40], v_pool.view(-1, heads, head_dim)[:40]
ignored = (attend(q, *rows) - contiguous).abs().max()

k_wrong, v_wrong = (read_back(pool, [91, 7, 142]) for pool in (k_pool, v_pool))
exchanged = (attend(q, k_wrong, v_wrong) - contiguous).abs().max()
misplaced = sum(not torch.equal(a, b) for a, b in zip(k_wrong, k, strict=True))

print(f"table ignored:     largest difference {ignored:.2f}")
print(f"entries exchanged: largest difference {exchanged:.5f}, {misplaced} of 40 tokens misplaced")

# %% [markdown]
# No exception in either case. Without the table the answer is another one: it is attention over
# strangers' keys. With two entries exchanged the difference is no more than rounding, although
# 32 of 40 tokens are in the wrong place. A doubt to follow up: *so the order does not matter?* A
# weighted mean does not know an order, and the *last* query may read all keys. But a query in the
# middle of a prompt may only read those before it, and then it matters which they are. Worse is an
# entry that changes while the request lives: it can lead new tokens over old ones. The exercises
# plant such a fault in your table.
#
# ## Play with it
#
# 64 tokens in a pool of 128 slots; each row is one physical block. The digits are logical block
# numbers, `*` is the token. Move the position over the end of a block, then change the block size.

# %%
from minipaged.viz.figures import show_slots
from minipaged.viz.widgets import explore

tables = {8: [9, 2, 12, 5, 0, 14, 7, 3], 16: [4, 1, 6, 2], 32: [3, 1]}


def where(position, block_size):
    """The slot of a token, computed and drawn."""
    table = tables[block_size]
    logical, offset = divmod(position, block_size)
    slot = table[logical] * block_size + offset
    spans = []
    for number, block in enumerate(table):
        first, end = block * block_size, (block + 1) * block_size
        cuts = [first, end] if number != logical else [first, slot, slot + 1, end]
        for a, b in pairwise(cuts):
            if a < b:
                spans.append((a, b - a, "*" if a == slot and b == slot + 1 else str(number), b - a))
    title = (
        f"{position} // {block_size} = {logical}   {position} % {block_size} = {offset}   "
        f"slot {table[logical]} * {block_size} + {offset} = {slot}"
    )
    return show_slots(128, spans, columns=block_size, title=title)


explore(
    where, position=(0, 63, 1), block_size=[8, 16, 32], start={"position": 37, "block_size": 16}
)

# %% [markdown]
# ## What a table costs
#
# Llama-3-8B has 8 KV heads and head_dim 128, at 2 bytes a number, keys and values. How many bytes
# has a block of 16 slots in one layer? And with 4 bytes an entry, how long is the table of a
# request of 4,096 tokens? Then let the cell print both, for four block sizes.

# %%
per_token = 2 * 8 * 128 * 2  # keys and values, heads, head_dim, bytes: one layer
print("block size   K and V of a block and layer   table of 4,096 tokens   empty slots, mean")
for size in (1, 4, 16, 128):
    print(
        f"{size:10} {per_token * size:24,} bytes {4096 // size * 4:17,} bytes {(size - 1) / 2:17}"
    )

# %% [markdown]
# An entry of 4 bytes leads to 65,536 bytes, and not only once: all 32 layers use the same table,
# since token 37 is in the same slot of each layer's pool. So the table of a request of 4,096 tokens
# has 1 KiB, and its keys and values 512 MiB. Its memory is not what a table costs. It costs a
# look-up for each block that is read, before the address of the data is known; lesson 11 measures
# that. The last column is the other side: what is empty behind the last token, if lengths fall
# anywhere. Block size 1 leaves none empty and has 16 times as many look-ups as block size 16; with
# block size 128, 63.5 slots are empty on average.
#
# One more doubt. *`gather_kv` copies all keys together before attention reads them. At every step,
# in every layer: is that not the very copying that we wanted to avoid?* It is. As a way to see what
# is right it will do, and the engine's own CPU code does it too. On a GPU a kernel, a program that
# runs there, looks the table up itself and reads each block where it lies, without a copy. You will
# do that by hand in lesson 04 and on a GPU in lesson 11.
#
# ## Where this is in other engines
#
# - **vLLM**: `BlockTable` in `vllm/v1/worker/block_table.py` keeps the tables of all requests as
#   rows of one int32 tensor. `append_row` adds entries, `compute_slot_mapping` is the formula, for
#   a whole step on the GPU.
# - **SGLang**: `ReqToTokenPool` in `python/sglang/srt/mem_cache/memory_pool.py`. Its rows have an
#   entry for every *token*, the slot itself: a table as for block size 1, without a division.
# - **nano-vllm**: `prepare_prefill` and `prepare_decode` in `nanovllm/engine/model_runner.py` build
#   the slot mapping in plain Python; `store_kvcache` in `nanovllm/layers/attention.py` writes.
# - **Here**: `minipaged/cache/table.py`; the formula on tensors is `slots_of` in
#   `minipaged/kernels/reference.py`.
#
# ## Check yourself
#
# Exercise 03.4 asks nine questions with other numbers and grades your answers: slots and the way
# back, bytes, entries, block sizes, and the words of the table above. At the end of the
# exercises is a question without points: why one level of tables is enough here, when an operating
# system has several.
#
# ## Next
#
# Open `exercises/03_block_table.ipynb`. Once your table is right, the engine runs on it; and once
# `gather_kv` is right, the tutor's attention reads through it. Lesson 04 will take the copy away:
# paged attention, computed block by block.
