# %% [markdown]
# # 11 · The decode kernel
#
# **The question.** In lesson 04 your loop went through a request's blocks in Python, one after
# another. A GPU does it for hundreds of requests at once. What does the code look like that it
# runs, and how does that code find its keys?
#
# You will write it in Triton, a language for GPU code that looks like Python. Without a GPU Triton
# can *interpret* it: run it as plain Python, slowly. So on any Linux machine you can find nearly
# everything that is wrong with a kernel (the end says what not), but not how fast it is. Allow 90
# minutes with the exercises.

# %%
import os

from minipaged.course.needs import require_triton

os.environ["TRITON_INTERPRET"] = "1"  # run kernels as Python; set before triton is imported
require_triton()

# %% [markdown]
# ## Many programs, one text
#
# A *kernel* is a function that runs on a GPU. It is started many times at once, and each of these
# runs is called a *program*. All have the same text. What tells them apart is a number,
# `tl.program_id`.
#
# Take two rows of 10 numbers that are to be added, in programs of 4 numbers each. How many programs
# does it take, and what does the last one have to look out for?
#
# 3 programs, and the last would read places 8, 9, 10 and 11: two of them belong to somebody else.
# So it needs a *mask*, a yes or no for each place.

# %%
import torch
import triton
import triton.language as tl


@triton.jit
def add_rows(a, b, total, count, SIZE: tl.constexpr):
    places = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    inside = places < count
    both = tl.load(a + places, mask=inside) + tl.load(b + places, mask=inside)
    tl.store(total + places, both, mask=inside)


a, b = torch.arange(10), torch.full((10,), 100)
total = torch.full((12,), -1)
add_rows[(3,)](a, b, total, 10, SIZE=4)
print(total.tolist())

# %% [markdown]
# Read it line by line.
#
# - `@triton.jit` makes a kernel of the function below it.
# - `add_rows[(3,)](...)` starts 3 programs: the *grid* of this launch.
# - `tl.arange(0, SIZE)` is 0, 1, 2, 3: not a loop but a *tile*, four numbers that are handled at
#   once. Its length must be a power of two, and known when the kernel is compiled: that is what
#   `tl.constexpr` says.
# - `a` is a *pointer*: the address of the tensor's first number. The kernel is told neither shape
#   nor length. `a + places` are four addresses (`a + 1` is the next number, not the next byte), and
#   `tl.load` fetches what is there.
# - Where the mask says no, nothing is read or written. The two places behind `total` still are -1.
#   `tl.load(..., other=0)` sets the tile to 0 there.
#
# *Where are the threads?* A GPU consists of some hundred *multiprocessors*, and each works on
# several programs at a time. Within a program the work is done by *threads* in groups of 32, a
# *warp*: all 32 carry out the same instruction at the same time, each on its own number. In Triton
# you write for the tile, and the compiler deals it out to the threads.
#
# ## The address of a number
#
# A kernel gets a pointer to the pool, so it has to work addresses out. Llama-3-8B keeps 8 KV heads
# of 128 numbers; the pool is `[block, slot, head, d]`, blocks of 16. A request's table is [7, 91,
# 142]. How many numbers from the pool's beginning is number 77 of head 3 of its token 37?
#
# Token 37 is in entry 37 // 16 = 2, so in block 142, slot 37 % 16 = 5 of it. From slot to number
# there are two more steps: 8 heads to a slot, 128 numbers to a head.

# %%
table, token, head, d = [7, 91, 142], 37, 3, 77
slot = table[token // 16] * 16 + token % 16
print("slot", slot, " number", (slot * 8 + head) * 128 + d)

entry = torch.tensor(131_072, dtype=torch.int32)
print("block 131,072 begins at number", entry.item() * 16 * 8 * 128)
print("in 32 bits                     ", (entry * 16 * 8 * 128).item())

# %% [markdown]
# A block has 16 · 8 · 128 = 16,384 numbers, and 131,072 of them are 2 to the 31: one more than 32
# bits with a sign can hold. Tables are kept in 32 bits, and a product of 32-bit numbers has 32
# bits. It becomes negative, and the kernel reads far in front of the pool. No exception says so
# (vLLM #50427 was this). With numbers of 2 bytes (*half precision*) such a pool has 4 GiB a layer
# for K alone. K and V of the 32 layers of Llama-3-8B would be 256 GiB; a model that keeps them in a
# few of its layers gets there with far less. So the block's number is made an int64 first, and
# multiplied then.
#
# **Exercise 11.1** (`exercises/11_decode_kernel.ipynb`) is this address, in two layouts.
#
# ## What one program touches
#
# Which part of the pool does a program read? Let it write down its own addresses. In this pool are
# 8 blocks of 4 slots, 2 KV heads, 8 numbers a head, in the order `[block, slot, head, d]`, which
# engines call *NHD*. A program is to read KV head 1 of 10 tokens in the blocks 5, 2 and 7. Before
# you look: how many numbers, and in how many pieces?


# %%
@triton.jit
def note_places(
    tables, found, length, head, SIZE: tl.constexpr, HEADS: tl.constexpr, NUMBERS: tl.constexpr,
    PACKED: tl.constexpr,
):  # fmt: skip
    """For each of 16 tokens and each number of a head: its place in the pool, -1 without a token."""
    tokens, numbers = tl.arange(0, 16), tl.arange(0, NUMBERS)
    alive = tokens < length
    entries = tl.load(tables + tokens // SIZE, mask=alive, other=0).to(tl.int64)[:, None]
    inner = (tokens % SIZE)[:, None]
    if PACKED:  # [block, head, d // 4, slot, d % 4]
        places = ((entries * HEADS + head) * (NUMBERS // 4) + numbers // 4) * SIZE + inner
        places = places * 4 + numbers % 4
    else:  # [block, slot, head, d]
        places = (entries * SIZE + inner) * HEADS * NUMBERS + head * NUMBERS + numbers
    into = found + tokens[:, None] * NUMBERS + numbers[None, :]
    tl.store(into, tl.where(alive[:, None], places, -1))


def noted(length, head, packed):
    """The places that a program reads, as it wrote them down."""
    found = torch.empty(16, 8, dtype=torch.int64)
    tables = torch.tensor([5, 2, 7], dtype=torch.int32)
    note_places[(1,)](tables, found, length, head, SIZE=4, HEADS=2, NUMBERS=8, PACKED=packed)
    return found[found >= 0].tolist()


from minipaged.viz.figures import show_reads
from minipaged.viz.widgets import explore


def drawn(head, layout, tokens):
    """The pool, a line for each block and a square for each pair of numbers."""
    places = noted(tokens, head, layout == "packed")
    return show_reads(8, 64, places, unit=2, title=f"{layout}: KV head {head} of {tokens} tokens")


explore(
    drawn,
    start={"head": 1, "layout": "NHD", "tokens": 10},
    head=[0, 1],
    layout=["NHD", "packed"],
    tokens=(1, 12, 1),
)

# %% [markdown]
# 10 tokens of 8 numbers are 80 numbers, in 10 pieces of 8: between two pieces lies the other head.
# A block is 4 slots of 16 numbers, and of block 7 only two slots were read.
#
# The second layout is the one that vLLM's first kernel used for K: *packed by x*. There x numbers
# of one token lie side by side, then the same x of the next token: `[block, head, d // x, slot, d %
# x]`, here with x = 4. Choose it above. All of a head's numbers in a full block are one piece now.
# What that is good for comes below.
#
# ## The loop over tiles
#
# Now lesson 04's loop: running maximum, running sum, running mixture. One program serves one query
# head, and takes a tile of 2 keys in each turn. A tile need not be a block: every key looks its own
# block up. `tl.sum(x, 1)` adds along axis 1, like `x.sum(1)` in torch, and `tl.max` does likewise;
# `tl.maximum` takes the larger of two.


# %%
@triton.jit
def read_head(
    query, keys, values, tables, out, length, scale, SIZE: tl.constexpr, DIM: tl.constexpr,
    WIDE: tl.constexpr, MASK: tl.constexpr,
):  # fmt: skip
    """One query head over one KV head. WIDE is DIM or more. MASK "scores" hides the tail too late."""
    numbers = tl.arange(0, WIDE)
    in_head = numbers < DIM
    asked = tl.load(query + numbers, mask=in_head, other=0.0)
    best, weight_sum = float("-inf"), 0.0
    mixture = tl.full([WIDE], 0.0, tl.float32)
    for first in range(0, length, 2):
        tokens = first + tl.arange(0, 2)
        alive = tokens < length
        looks = alive if MASK == "loads" else tokens >= 0
        entries = tl.load(tables + tokens // SIZE, mask=looks, other=0).to(tl.int64)
        places = (entries * SIZE + tokens % SIZE)[:, None] * DIM + numbers[None, :]
        reads = looks[:, None] & in_head[None, :]
        key_tile = tl.load(keys + places, mask=reads, other=0.0)
        value_tile = tl.load(values + places, mask=reads, other=0.0)
        points = tl.sum(asked[None, :] * key_tile, 1) * scale
        points = tl.where(alive, points, float("-inf"))
        new_best = tl.maximum(best, tl.max(points, 0))
        shares, keep = tl.exp(points - new_best), tl.exp(best - new_best)
        weight_sum = weight_sum * keep + tl.sum(shares, 0)
        mixture = mixture * keep + tl.sum(shares[:, None] * value_tile, 0)
        best = new_best
    tl.store(out + numbers, mixture / tl.where(weight_sum > 0, weight_sum, 1.0), mask=in_head)


nan = torch.nan
keys = torch.tensor([4.0, 1.0, nan, nan, 1.0, 2.0]).log()  # 3 blocks of 2 slots
values = torch.tensor([2.0, 16.0, nan, nan, 8.0, 4.0])
order = torch.tensor([2, 0], dtype=torch.int32)


def ask(length, mask="loads"):
    out = torch.full((2,), nan)
    read_head[(1,)](torch.ones(1), keys, values, order, out, length, 1.0,
                    SIZE=2, DIM=1, WIDE=1, MASK=mask)  # fmt: skip
    return out.tolist()


print("4 tokens            ", ask(4))
print("0 tokens            ", ask(0))

# %% [markdown]
# 5, as on paper in lesson 04. `out` has two places and began as NaN; the second one is nobody's and
# stays so.
#
# *A sequence without keys?* The loop has no turn, the sum is 0, and 0 / 0 would be NaN: so divide
# by 1 there, and zeros come out (vLLM #57094).
#
# *Is minus infinity never taken from minus infinity?* That would be NaN. But every turn has one key
# at least, so the new maximum is a number.
#
# ## Three kinds of nobody's numbers
#
# Now the context has 3 tokens, and the second tile one place too many. What lies there? And is it
# enough to give it the score minus infinity, so that its weight is 0?

# %%
order = torch.tensor([2, 1], dtype=torch.int32)  # token 2 goes to block 1
keys[2], values[2] = 0.0, 6.0  # into its first slot; the second stays NaN
print("masked when loaded  ", [round(x, 3) for x in ask(3)])
print("only scores masked  ", [round(x, 3) for x in ask(3, "scores")])

# %% [markdown]
# (1 · 8 + 2 · 4 + 1 · 6) / 4 is 5.5. Masking the scores is not enough: 0 · NaN is NaN (lesson 04;
# vLLM #936). What is not the request's must not be *loaded*. Three kinds of places are nobody's:
#
# - **Slots behind the last token**, and entries of the table behind the last block.
# - **Numbers behind head_dim.** A tile's side is a power of two. Some models have heads of 80
#   numbers, so the tile is 128 wide, and 48 of its places reach into the next head. Read, they
#   spoil the score; written, they overwrite a neighbour's result (SGLang #1281, vLLM #4128).
# - **Rows behind the group**, of which now.
#
# ## K and V once for all heads of a group
#
# In Llama-3-8B 32 query heads share 8 KV heads, so 4 query heads read the same keys. With a program
# for each query head, how many bytes of K and V does a context of 2,048 tokens cost in one layer?
# And with one for each KV head? A number has 2 bytes.
#
# A token has 8 · 128 · 2 numbers of K and V, so 4,096 bytes: 8 MiB for 2,048 of them. With a
# program for each query head every byte is loaded four times, 32 MiB. Let the programs count:


# %%
@triton.jit
def count_loads(counter, length, HEAD_BYTES: tl.constexpr, TILE: tl.constexpr):
    for first in range(0, length, TILE):
        alive = first + tl.arange(0, TILE) < length
        tl.atomic_add(counter, tl.sum(alive.to(tl.int64), 0) * 2 * HEAD_BYTES)


for programs, whose in ((32, "query"), (8, "KV")):
    counter = torch.zeros(1, dtype=torch.int64)
    count_loads[(programs,)](counter, 2048, HEAD_BYTES=256, TILE=1024)
    print(f"a program for each {whose:5} head: {counter.item() / 2**20:4.0f} MiB")

# %% [markdown]
# (`tl.atomic_add` lets many programs add to one number without losing any.) A GPU keeps what it
# read last in a *cache*, so the second to fourth time may be cheaper, but nobody promises that.
#
# So a program takes a KV head and all its query heads: they become the rows of a small matrix, and
# their scores are one product of matrices, `[rows, d]` by `[d, keys]`. That is `tl.dot`, for which
# a GPU has units of their own; `tl.trans` turns the tile of keys, `[keys, d]`, over for it. The
# units want sides of at least 16. The group of 4 is *padded* to 16 rows, 12 of which compute
# nothing of use. That wastes arithmetic, which the kernel has to spare: what it waits for is
# memory. Groups of 3 or 24 go the same way, with 16 and 32 rows. Query head h belongs to KV head h
# // group: 48 heads over 2 are heads 0 to 23 and 24 to 47 (vLLM #18100).
#
# > **A claim, recomputed.** *Paging costs the attention kernel 3 to 5 %* (claim C8). No source for
# > it was found; the PagedAttention paper reports 20 to 26 % more latency for its own kernel than
# > for one over contiguous memory. What can be counted here is bytes: an entry of 4 bytes for a
# > block of 16 tokens, beside 65,536 bytes of K and V a layer. It cannot be the bytes, then. What
# > costs time is that an address is known only when the entry has come, and the arithmetic for it.
# > That has to be measured, with kernel, layout and card named: `benchmarks/gpu_kernels.py` does it
# > on a GPU.
#
# **Exercise 11.3** is the whole kernel: addresses, tiles, masks and groups. The engine's own also
# looks up the next tile's blocks while this tile is computed, and can share a long context among
# several programs (lesson 12).
#
# ## Lines and instructions
#
# Memory is not read number by number. What travels is a *cache line* of 128 bytes. A warp's widest
# load takes 16 bytes for each of its 32 threads: 512 bytes, 4 lines if they lie side by side. Do
# they? Count it for head_dim 128 in half precision: first the bytes of K in one block and head,
# which is the tile if a kernel takes a block a turn; then what one instruction touches, if in NHD
# it takes row by row, and packed (x is 8 numbers, 16 bytes) the same 16 bytes of 32 keys.

# %%
from itertools import pairwise

HEADS, ROW = 8, 256  # KV heads; bytes of one head of one token


def byte_of(layout, size, key, byte):
    """Where in the pool a byte of head 0 of a key lies. The blocks are every third."""
    block, slot = 3 * (key // size), key % size
    if layout == "NHD":
        return ((block * size + slot) * HEADS) * ROW + byte
    return (block * HEADS * ROW + byte // 16 * 16) * size + slot * 16 + byte % 16


def lines_of(places):
    """Lines touched by these places of 16 bytes, and the longest run of bytes side by side."""
    ordered = sorted(places)
    longest = run = 16
    for before, after in pairwise(ordered):
        run = run + 16 if after == before + 16 else 16
        longest = max(longest, run)
    return len({place // 128 for place in ordered}), longest


print("                  a tile            one instruction of 512 bytes")
print("layout  block     bytes   lines     lines   bytes side by side")
for layout in ("NHD", "packed"):
    for size in (4, 16, 128):
        tile = [byte_of(layout, size, key, b) for key in range(size) for b in range(0, ROW, 16)]
        if layout == "NHD":
            loads = [byte_of(layout, size, n // 16, n % 16 * 16) for n in range(32)]
        else:
            loads = [byte_of(layout, size, key, 0) for key in range(32)]
        of_tile, (lines, run) = lines_of(tile)[0], lines_of(loads)
        print(f"{layout:8}{size:5}{16 * len(tile):10,}{of_tile:8}{lines:10}{run:21}")

# %% [markdown]
# > **A claim, recomputed.** *Blocks of 4 tokens cannot fill a memory line of 128 bytes* (claim C9).
# > The tile of such a block has 1,024 bytes, in 8 lines, all of them full: bytes / 128 is the
# > number of lines in every row of the table. What *one instruction* touches is another matter:
# > packed, it finds 64 bytes side by side in blocks of 4, so it touches 8 lines for 512 bytes, and
# > the other half of each is the next instruction's. In NHD block size does not matter here at all.
#
# Packed is the layout for a kernel in which each thread has a key of its own and reads 16 bytes of
# it. A kernel that loads whole rows, like ours, is as well off with NHD, and newer ones use it.
#
# **Exercise 11.2** counts all this for any block size, with what comes next.
#
# ## What a block size costs
#
# An answer of 20 tokens in a block of 128: how much of the block is empty?
#
# 108 of 128 slots, 84 %. (*70 %*, one text says: claim C23.) In a last block 0 to block_size - 1
# slots are empty; if all are equally likely, (block_size - 1) / 2 on average. Does that hold on a
# workload? Forty requests, and a pool of 8,192 slots, cut into blocks of each size. Counted in
# every step, over all running requests:

# %%
from minipaged.simulate import simulate
from minipaged.workload import SyntheticWorkload

work = list(SyntheticWorkload(40, (20, 400), (10, 120), seed=11).arrivals())


def measured(size):
    """Means over steps and requests: empty slots, their share of all, bytes of a table."""
    trace = simulate(work, block_size=size, num_blocks=8192 // size, max_num_batched_tokens=256)
    empty = held = tables = seen = 0
    for step in trace.steps:
        new = {one.request_id: one.num_tokens for one in step.work}
        for name, table in step.tables.items():
            used = step.computed[name] + new.get(name, 0)
            empty, held = empty + len(table) * size - used, held + len(table) * size
            tables, seen = tables + 4 * len(table), seen + 1
    return empty / seen, empty / held, tables / seen


print("block   empty slots a request   (block - 1) / 2   share empty   table bytes a request")
for size in (1, 4, 16, 32, 128):
    empty, share, tables = measured(size)
    print(f"{size:5}{empty:24.1f}{(size - 1) / 2:18.1f}{share:14.1%}{tables:24.0f}")

# %% [markdown]
# The mean is (block - 1) / 2 to within 0.1 slots, for blocks of 128 to within 1.5: lengths as they
# come are about that even. The table is long for small blocks, and even at block size 1 it is small
# beside what it points to: 4 bytes a token, where K and V of one layer of Llama-3-8B are 4,096.
#
# > **A claim, recomputed.** *Blocks of 16 for a 7B model, of 32 from 13B on* (claim C16). Nothing
# > in this table knows how large the model is. What decides is how long the requests are, and how
# > fine copy-on-write (lesson 05) and prefix hits (lesson 09) are to be.
#
# *And the kernel's time?* If a tile is a block, as in many kernels, then in blocks of 4 the loop
# has four times as many turns as in blocks of 16, and a tile of 4 keys does not fill the 16 of a
# `tl.dot`. Where each key looks up its own block, the number of turns has nothing to do with the
# block size. Then what is left is more look-ups. How much that costs, only a card can tell.
#
# ## What the compiler makes of it
#
# On a GPU no Python runs: the compiler turns the kernel into the card's instructions. It can do so
# without a card, and what it reports says much about a kernel:
#
# - *registers*: the numbers that a thread keeps at hand. A multiprocessor has a fixed number of
#   them for all its threads, so a kernel that takes many runs in few programs at a time.
# - *spills*: what did not fit and goes to slow memory. It should be none.
# - *shared memory*: where tiles lie that were fetched ahead.
#
# `minipaged bench kernels --aot` prints this for the engine's kernels and two kinds of card.
# Interpreter and compiler cannot share a process; it starts one of its own.
#
# Two things the interpreter does not show. It runs one program after another: where two write to
# the same place the same one is always last, and on a GPU it is any of them. And it takes more of
# Python than the compiler does. What neither of them reports is a load that a mask should have kept
# away. This is why the check fills everything that is nobody's with NaN.
#
# ## Where this is in other engines
#
# - **vLLM**: `kernel_unified_attention_2d` in `vllm/v1/attention/ops/triton_unified_attention.py`
#   packs the group as rows, and makes its block numbers int64. The first kernel, with K packed by
#   x, is `csrc/attention/attention_kernels.cuh`.
# - **SGLang**: `_fwd_grouped_kernel_stage1` in
#   `python/sglang/srt/layers/attention/triton_ops/decode_attention.py` takes 16 query heads at
#   once; `_fwd_kernel_stage1` beside it takes one, for models without groups.
# - **nano-vllm**: `store_kvcache_kernel` in `nanovllm/layers/attention.py` is a short Triton kernel
#   to begin with; it writes K and V to their slots. Attention itself is FlashAttention's.
# - **Here**: `decode_kernel` in `minipaged/kernels/triton_decode.py`, with its parts in
#   `triton_common.py`.
#
# ## Check yourself
#
# **Exercise 11.4** asks eight questions: addresses, bytes, lines, masks. An open question at the
# end has a model answer: a colleague wants blocks of 128 for speed, another one blocks of 1.
#
# ## Next
#
# One program reads the whole context of its request. With few requests most multiprocessors have
# nothing to do. Lesson 12 cuts the context in pieces, and works out what a card can give at best.
