# %% [markdown]
# # 02 · The block pool and its free queue
#
# **The question.** The memory is cut into blocks, and eight requests take and return them all the
# time. Who knows which block is free, which one is handed out next, and when a block may be given
# to somebody else?
#
# The *block pool* knows. It has two parts: a *free queue*, which holds the ids of free blocks in
# the order in which they will be handed out, and a count beside each block of how many requests use
# it. You will write both. They are the smallest part of an engine, and a fault here writes one
# visitor's words over another's. Allow 60 minutes with the exercises.

# %% [markdown]
# ## Watch a pool at work
#
# Four requests and ten blocks of 4 slots; at most three requests run at once. The pair `(6, 3)` is
# a prompt of 6 tokens and an answer of 3. `simulate` runs the real engine with its scheduler, but
# without a model: in place of one stands a *ledger*, which writes a number into each token's slot
# and reads it back through the block table. More about it below.
#
# To see what the pool is asked, we put our own in its place. It is the engine's pool, except that
# it writes down every call and the queue after it. `Components` names the class of every part of
# the engine, and `replace` makes a copy of that list with one part exchanged.

# %%
from dataclasses import replace

from minipaged import Components
from minipaged.cache.pool import BlockPool
from minipaged.simulate import simulate

log = []


class LoggedPool(BlockPool):
    def allocate(self, count):
        block_ids = super().allocate(count)
        log.append((f"allocate({count}) gives {block_ids}", list(self.free_queue)))
        return block_ids

    def free(self, block_ids):
        super().free(block_ids)
        log.append((f"free({block_ids})", list(self.free_queue)))


work = [(6, 3), (5, 9), (7, 5), (5, 6)]
memory = {"block_size": 4, "num_blocks": 10, "max_num_seqs": 3}
trace = simulate(work, components=replace(Components(), block_pool=LoggedPool), **memory)
for call, queue in log:
    print(f"{call:28} queue: {' '.join(map(str, queue))}")

# %% [markdown]
# The first three lines are the prompts of A, B and C: 6, 5 and 7 tokens in blocks of 4. In the
# fourth C needs a third block. In the fifth A finishes, and its two blocks go back to the *head* of
# the queue, the end from which blocks are taken. D has waited for this moment and gets the same
# two.
#
# Step through the same run. A solid cell is a full block, one that is filled in part still has
# room, an empty one is free.

# %%
from minipaged.viz.widgets import step_through

step_through(trace, step=3)

# %% [markdown]
# *Does nobody wipe a block before the next request gets it?* Nobody does. A token's keys and values
# are written into its slot before anything reads that slot, and attention reads no slot beyond the
# last token written. What the last owner left there is never looked at.
#
# ## The order of reuse
#
# If blocks are not wiped, a freed block still holds what it held, and somebody might want that
# again: two visitors with the same introduction need the same keys and values. Lesson 09 will find
# such blocks by a *hash*, a short fingerprint of their contents. Which freed blocks should then be
# handed out first?
#
# Work it out on eight blocks. A holds 0, 1 and 2, the queue is `3 4 5 6 7`, and A finishes. After
# how many single allocations is the first of A's three blocks given away, if freed blocks go to the
# head of the queue? And if they go to the *tail*, its other end?

# %%
from minipaged.cache.block import FreeQueue

for end in ("head", "tail"):
    queue = FreeQueue(8)
    freed = [queue.pop_head() for _ in range(3)]
    for block_id in reversed(freed):
        queue.prepend(block_id) if end == "head" else queue.append(block_id)
    order = list(queue)
    first = next(number for number, b in enumerate(order, 1) if b in freed)
    print(f"back at the {end}: {' '.join(map(str, order))}   A's first loss: allocation {first}")

# %% [markdown]
# At the tail the contents last until everything else is used up. So the rule is: a block with a
# hash goes to the tail, because its contents may be wanted again; a block without one goes to the
# head, because nobody can find its contents, and spending it saves another. Until lesson 09 no
# block has a hash, and yours all go to the head.
#
# One more rule concerns a whole table: it is freed from its end to its beginning. The second line
# of the output shows why. 2 stands before 0, so the end of the text is lost first. Keys and values
# depend on everything before them: the beginning of a text is useful without its end, the end
# without its beginning is not. (Going to the head, the same rule puts 0 first. That does no harm:
# without a hash there is nothing to lose.)
#
# ## A list, a deque, or links?
#
# A Python list could be the queue. Count before you decide. The queue holds 4,096 ids, and a
# visitor wants block x back, which stands at place 1,024, counted from 0. How many elements does
# `ids.remove(x)` touch?
#
# To find x it compares places 0 to 1,024: 1,025 elements. Then the 3,071 behind it move up by one.
# Together 4,096. Try another place: what is not compared is moved. A `deque` (Python's list with
# two ends) takes from either end in one step, but it must search as well. Is a pool ever so large?
# Llama-3-8B keeps 131,072 bytes a token, so a block of 16 takes 2 MiB, and 60 GB hold 28,610 of
# them.
#
# The cell counts, it does not time: for list and deque an `int` that notes each comparison (what
# the list moves is added by hand), and for the engine's queue all steps of Python that one
# `remove` takes.

# %%
from collections import deque

from minipaged.course.cost import cost_of
from minipaged.viz.plots import lines


class Noted(int):
    compared = 0

    def __eq__(self, other):
        Noted.compared += 1
        return int(self) == int(other)

    __hash__ = int.__hash__


def compared_by(queue, block_id):
    Noted.compared = 0
    queue.remove(Noted(block_id))
    return Noted.compared


lengths = [512 * k for k in range(1, 9)]
touched = {"list: compared or moved": [], "deque: compared": [], "links: all steps": []}
for n in lengths:
    place = n // 4
    moved = n - 1 - place
    touched["list: compared or moved"].append(compared_by(list(range(n)), place) + moved)
    touched["deque: compared"].append(compared_by(deque(range(n)), place))
    touched["links: all steps"].append(cost_of(FreeQueue(n).remove, place))

lines(
    lengths, touched, title="Taking out the id at a quarter of the queue", xlabel="ids in the queue"
)

# %% [markdown]
# The third line is flat: 11 steps, for 512 ids as for 4,096. Such an operation is called *O(1)*:
# its cost does not grow with the length.
#
# ## Links
#
# A *doubly linked list* gets there: each id knows the one before it and the one behind it, so to
# take it out nobody has to be searched for. The ids are 0 to n - 1, so the links fit into two lists
# indexed by id. That makes them *intrusive*: they stand with the blocks themselves, and queueing a
# block creates nothing.
#
# The two ends are where such code goes wrong: what is before the head? A *sentinel* answers that.
# It is one more entry, with index n, that stands before the head and behind the tail, so that the
# list becomes a ring and every id has two neighbours. For the queue `2 0 5` of a pool of six:


# %%
from itertools import pairwise


def links(queue, n=6):
    ring = [n, *queue, n]
    prev, nxt = ["-"] * (n + 1), ["-"] * (n + 1)
    for one, other in pairwise(ring):
        nxt[one], prev[other] = other, one
    return prev, nxt


def show_links(queue):
    print("queue", *queue)
    print("  id  ", "   ".join("012345"), "  6 (sentinel)")
    for name, row in zip(("prev", "next"), links(queue), strict=True):
        print(" ", name, "   ".join(map(str, row)))


show_links([2, 0, 5])

# %% [markdown]
# Read it: the sentinel's next is 2, so 2 is the head. 2 leads to 0, 0 to 5, and 5 to 6, the
# sentinel. Blocks 1, 3 and 4 are not queued and have no links.
#
# Now by hand, on paper, before you run the next cell:
#
# 1. **Unlink** 0. Which entries change? Two belong to its neighbours, two to 0 itself.
# 2. **Link** 3 at the tail of what is left. Four entries again: which, and to what?

# %%
show_links([2, 5])
print()
show_links([2, 5, 3])

# %% [markdown]
# Every operation of the queue is one of these two moves at some place. Putting an id at the head is
# linking it behind the sentinel, and at the tail, before it. Because of the ring no case is
# special, not even the empty queue: then both links of the sentinel are 6.
#
# *Why not Python's `OrderedDict`?* It is such a list inside, it is O(1) in all that we need, and
# the check accepts it. Other engines write the links out because theirs stand in the block itself
# and because, as here, it takes a dozen lines.
#
# **Exercise 02.1** (`exercises/02_block_pool.ipynb`) is the queue. Do it now or after the next two
# sections.
#
# ## Refcounts
#
# Beside the queue stands one number per block, its *refcount*: how many block tables hold the
# block. Nothing else counts: not who wrote it, nor whether somebody reads it just now. A table that
# holds a block is called its *holder*.
#
# Usually the count is 0 or 1. It is more when two requests have the same beginning and *share* the
# blocks of it. Follow a pool of four: A gets blocks 0 and 1; B shares block 0; A finishes. Which
# blocks are free, and what is the refcount of block 0 at each point?

# %%
pool = BlockPool(4, FreeQueue)


def show(event):
    counts = [pool.refcount(block_id) for block_id in range(4)]
    print(f"{event:18} refcounts {counts}   queue {list(pool.free_queue)}")


a = pool.allocate(2)
show("A gets two")
pool.share([0])
show("B shares 0")
pool.free(a)
show("A finishes")
pool.share([1])
show("C wants 1 back")

# %% [markdown]
# One rule ties both parts together: **a block is on the queue exactly when its refcount is 0.**
# Block 0 is still B's when A finishes, so it is not queued. Block 1 was free, and when C shares it
# it must leave the queue from wherever it stands. That is the `remove` which made us count steps.
#
# ## Freed twice
#
# What if a block is freed that nobody holds? Let us see it happen. This pool is careless: it counts
# nothing and believes every call. Its queue is `PlainQueue`, the course's queue on a list, without
# the test for ids that are queued already. The fault that meets it stands in the block table below,
# which returns its last block twice when its request ends.
#
# The ledger will tell. The number that it writes for a token is a hash of the token and of all that
# it reads before it, and the next token follows from that. If a slot holds something else than its
# request wrote there, the tokens that come out are different ones.

# %%
from minipaged.cache.table import BlockTable
from minipaged.course.fixtures import PlainQueue


class CarelessQueue(PlainQueue):
    def prepend(self, block_id):
        self._ids.insert(0, block_id)


class CarelessPool:
    def __init__(self, num_blocks, make_queue):
        self.num_blocks, self.free_queue = num_blocks, make_queue(num_blocks)

    @property
    def num_free(self):
        return len(self.free_queue)

    def allocate(self, count):
        return [self.free_queue.pop_head() for _ in range(count)]

    def free(self, block_ids):
        for block_id in reversed(block_ids):
            self.free_queue.prepend(block_id)


class FaultyTable(BlockTable):
    def release(self):
        block_ids = super().release()
        return [*block_ids, block_ids[-1]]


def tokens_of(trace, request_id):
    work = [w for record in trace.steps for w in record.work if w.request_id == request_id]
    return [token for w in work for token in w.sampled]


careless = replace(
    Components(), free_queue=CarelessQueue, block_pool=CarelessPool, block_table=FaultyTable
)
spoilt = simulate(work, components=careless, **memory)
for name in "ABCD":
    right, came = tokens_of(trace, name), tokens_of(spoilt, name)
    print(name, "the same tokens" if right == came else f"{right}\n  {came}")

# %% [markdown]
# A's table was [0, 1], and it freed 1 twice, so the queue began `0 1 1`. D took the first two. One
# step later B needed a block and got the next one on the queue: 1 again.

# %%
from minipaged.viz.figures import show_step

show_step(spoilt, 4)

# %% [markdown]
# Block 1 is B's and D's ("+"), although nobody shared it. D wrote its fifth token there, then B
# wrote one of its own over it. So B reads what it wrote, and D reads what B wrote: D's answer comes
# out wrong. That is the worst kind of fault. It happened when A was freed, D suffers from it,
# nothing has crashed, and next time it may be somebody else.
# The number of free blocks is wrong as well: in step 8 this pool counts 5 where 4 are left.
#
# Now the same faulty table over the engine's own pool:

# %%
try:
    simulate(work, components=replace(Components(), block_table=FaultyTable), **memory)
except ValueError as error:
    print("ValueError:", error)

# %% [markdown]
# A *double free* must raise, at the call that is wrong and before anything has changed. "Before" is
# the part that is easy to miss. `free([0, 1, 1])` with one holder each: whoever works through the
# list and raises at the third entry has freed two blocks by then. So look at the whole list first,
# and count how often each id stands in it: `free([b, b])` is right for a block with two holders and
# a double free for a block with one.
#
# ## All or nothing
#
# Allocation needs the same care. Two blocks are free and a request asks for three. A careless pool
# takes the two, finds nothing more, and raises. Who has the two blocks now?
#
# Nobody. The caller got an exception and no ids, so no table holds them, and the queue has lost
# them. An engine tries again at the next step, and the step after; each time whatever has come free
# meanwhile disappears. And a pool that hands the two out as half an answer is no better. Say 4 are
# free, and A and B need 3 each: both get 2, both wait for a third that only the other could give
# back.
#
# So `allocate` compares first and takes then, and a refusal leaves everything as it was, the order
# of the queue included. What does the engine do when it is refused? It *preempts*: it takes all
# blocks from one running request, frees them, and computes that request again later (lesson 08).
#
# **Exercise 02.2** is the pool.
#
# ## How small may the pool be?
#
# Each request below has a prompt of 8 tokens and 12 output tokens, and a block holds 4. So a
# request ends with 5 blocks (the last token is never stored). What is the smallest pool in which
# four of them run without a preemption? Move the sliders to find out what happens below it.

# %%
from minipaged.viz.plots import lines
from minipaged.viz.widgets import explore


def free_blocks(num_blocks, requests):
    trace = simulate([(8, 12)] * requests, block_size=4, num_blocks=num_blocks)
    free = [record.num_free for record in trace.steps]
    events = [event for record in trace.steps for event in record.events]
    preemptions = sum(event.kind == "preempted" for event in events)
    title = f"{len(free)} steps, {preemptions} preemptions"
    return lines(range(len(free)), {"free": free}, title=title, xlabel="step", ylabel="blocks")


explore(
    free_blocks,
    start={"num_blocks": 12, "requests": 4},
    num_blocks=[5, 6, 8, 10, 12, 16, 20, 24, 32],
    requests=(1, 8, 1),
)

# %% [markdown]
# Four times 5 are 20, and with 20 blocks there is none. With 12 there are two, and the four need 19
# steps instead of 12: a preempted request computes again what it had. The pool takes no notice.
# It hands out, takes back, refuses, and every count stays right.
#
# ## From the field
#
# Three situations that people who run such engines have met, each with its report:
#
# - **A fresh block has refcount 1** (MinivLLM #84). Allocate one of four blocks, free it: four are
#   free. If a fresh block starts with 0, the first `free` is already one too many.
# - **Freed after a copy** (vLLM #3347). B's table is a copy of A's, `[0, 1]`. B writes, so it gets
#   block 2 in place of block 1 and gives its hold on 1 back at once. When B finishes, it frees what
#   its table holds *now*, 0 and 2. The reported engine freed block 1 once more.
# - **Refused after a touch** (vLLM #11565). 5 blocks are free, and 2 of them hold what a new
#   request wants again. It needs those 2 and 4 others. 4 is less than 5, so it looks possible; but
#   once the 2 are shared, only 3 are left. It has to be refused with counts and queue as they were:
#   whoever shares blocks that stand on the queue must count them as needed.
#
# The first two are in the visible cases of exercise 02.2. The third becomes yours in lesson 09.
#
# ## Where this is in other engines
#
# - **minipaged**: `FreeQueue` in `minipaged/cache/block.py`, `BlockPool` in
#   `minipaged/cache/pool.py`.
# - **vLLM**: `FreeKVCacheBlockQueue` in `vllm/v1/core/kv_cache_utils.py`, links inside the
#   block objects and a sentinel at each end; `BlockPool` in `vllm/v1/core/block_pool.py` with
#   `get_new_blocks`, `touch` (our `share`) and `free_blocks`.
# - **SGLang**: `TokenToKVPoolAllocator` in `python/sglang/srt/mem_cache/allocator/token.py`. Free
#   slots are one tensor: `alloc` cuts a piece off its front, `free` joins a piece to its end. There
#   is no count per block and no `remove`: blocks that might be wanted again belong to a tree
#   (lesson 10), which gives them back when memory runs short.
# - **nano-vllm**: `BlockManager` in `nanovllm/engine/block_manager.py`. The queue is a `deque`, and
#   a block that is wanted again is taken out of it by `deque.remove`, a search. For a small pool
#   that is a fair price for one line.
#
# ## Check yourself
#
# **Exercise 02.3** asks seven questions about all this; your answers are checked like code. If you
# can answer them without looking back, go on.
#
# ## Next
#
# A request now owns blocks, scattered wherever the queue had them. Lesson 03 builds the table that
# says where token 37 is.
