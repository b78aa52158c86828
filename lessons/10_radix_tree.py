# %% [markdown]
# # 10 · The radix tree
#
# **The question.** The index of lesson 09 finds the blocks that a prompt begins with. Ask it
# something else: which beginnings are shared, by how many, and where do they part? It cannot say. A
# hash is the same or another one, and that is all it tells.
#
# A *tree of prefixes* finds the same blocks and shows all this. You will write the walk down such a
# tree, then an index that the engine runs on, then a rule for the waiting line that makes use of
# it. Allow 60 minutes with the exercises.

# %% [markdown]
# ## What a hash does not show
#
# Three short sequences: `1 2 3 4 5 6`, then `1 2 3 9 9`, then `1 2 7`. A block holds one token for
# the moment. `Desk` does for one request what the engine's manager does: match, share the hits,
# take new blocks, publish; `run` frees them at the end as well. Here is what the index of lesson 09
# knows after all three.

# %%
from minipaged.cache.hash_prefix import HashPrefixCache
from minipaged.cache.pool import BlockPool
from minipaged.cache.radix_prefix import RadixPrefixCache

no_key = ("", "")


class Desk:
    """An index over a pool, and what the manager does with both."""

    def __init__(self, make, block_size, num_blocks):
        self.pool, self.size = BlockPool(num_blocks), block_size
        self.index = make(block_size, self.pool)

    def start(self, *tokens):
        hits = self.index.match(tokens, no_key)
        self.pool.share(hits)
        table = hits + self.take(-(-len(tokens) // self.size) - len(hits))
        self.index.publish(tokens, table, len(hits), len(tokens) // self.size, no_key)
        return table

    def take(self, count):
        taken = self.pool.allocate(count)
        for block_id in taken:
            self.index.forget(block_id)
        return taken

    def run(self, *tokens):
        self.pool.free(self.start(*tokens))


three = [(1, 2, 3, 4, 5, 6), (1, 2, 3, 9, 9), (1, 2, 7)]
desk = Desk(lambda size, pool: HashPrefixCache(size, pool, root=b"lesson 10"), 1, 12)
for tokens in three:
    desk.run(*tokens)
for block_id in desk.index.known_blocks():
    print(f"block {block_id}: hash {desk.pool.block_hash(block_id).hex()[:12]}…")

# %% [markdown]
# Nine blocks. Which two of them follow on block 2? You would have to hash tokens until something
# fits.
#
# ## A tree by hand
#
# Draw it instead. Make a node for each token, below the node of the token before it, and let
# sequences share nodes as long as they agree. Such a tree is called a *trie*. How many nodes have
# the three sequences together?
#
# Six for the first, two more for the second, one more for the third: nine, as many as blocks. Most
# of them have one child only, and a long prompt would be a long chain. So merge: a run of tokens
# that nothing branches off inside becomes *one* node. That is a *radix tree*. How many nodes has it
# after each of the three? (An empty node stands above all of them, the tree's *root*. It is not
# counted, and has nothing to do with the root of the hashes in lesson 09.)

# %%
desk = Desk(RadixPrefixCache, 1, 12)
for tokens in three:
    desk.run(*tokens)
    print(f"after {' '.join(map(str, tokens))}:")
    print("\n".join(desk.index.dump().splitlines()[1:]))

# %% [markdown]
# One, three, five. A line is a node: its tokens with a bar between blocks, then the blocks. Its
# *children* stand below it, further to the right; a node without children is a *leaf*. Now the
# question is answered by looking: on block 2 follow 3 and 6.
#
# What happened at the second sequence? It agreed with the node `1 2 3 4 5 6` for three tokens and
# then left it. So the node was *split*: its first three tokens became a node of their own, the
# other three a child of that one, and 9 9 a second child. The third sequence split again.
#
# No block was moved or copied. A split rearranges what the index knows, and the blocks stay where
# they are.
#
# ## A match that ends inside a node
#
# Look for `1 2 3 4 8`. Walk along: which nodes do you come through, where does it end, and which
# blocks have you found?

# %%
print(desk.index.match([1, 2, 3, 4, 8], no_key))

# %% [markdown]
# Through `1 2` and `3`, then one token into `4 5 6`. At each node the next token picks the child (a
# dictionary, one look-up), and inside a node tokens are compared. The cost is that of the tokens
# found, however large the tree is.
#
# *Must the node be split now?* Not to answer. The engine's `match` changes nothing, and only
# `publish` splits, when something new goes in. SGLang, which introduced the radix tree for this,
# does split in its match. There a request *locks* the node at which its match ended, which means
# that this node must not be thrown out, and half a node cannot be locked.
#
# Splitting has a trap. One half is a new node, the other is the old one with less in it. Which
# should be which? Somebody may hold the old node, as a mark for "all my tokens up to here". If it
# keeps the *lower* half, it still ends where it ended. So the new node goes above.
#
# **Exercise 10.1** is the walk that splits.
#
# ## Pages
#
# With blocks of 16 tokens the tree is the same, made of larger pieces: where a token stood, there
# is now a *page*, the tokens of one block. Pages agree as a whole or not at all. Blocks of 4: how
# many hits has a prompt of three tokens? Then a request of six tokens runs and ends; what does the
# tree keep of it?

# %%
desk = Desk(RadixPrefixCache, 4, 4)
print("three tokens find", desk.index.match([1, 2, 3], no_key))
table = desk.start(1, 2, 3, 4, 5, 6)
desk.pool.free(table)
print("table", table)
print(desk.index.dump())
print("queue", *desk.pool.free_queue)

# %% [markdown]
# None, and no error; then one page. The second block is not full, so the tree never learned of it,
# and the pool hands it out before the known one. The first line of the dump is the key: each pair
# of salt and adapter has a tree of its own, so nothing is shared by mistake.
#
# Both questions are case 29 of this course's list of faults met in the field (SGLang #23387). Two
# more of these cases follow.
#
# ## In use, or only known
#
# A request of `1 2 3 4 5 6` is running. Another one, `1 2 3 9 9`, comes and finishes. A known block
# is *protected* while a table holds it, else *evictable*: its memory can be had. How many tokens
# are protected now, how many evictable?

# %%
desk = Desk(RadixPrefixCache, 1, 8)
running = desk.start(1, 2, 3, 4, 5, 6)
desk.run(1, 2, 3, 9, 9)
print(desk.index.dump())
print("protected", desk.index.protected_tokens(), "evictable", desk.index.evictable_tokens())
try:
    desk.take(3)
except MemoryError as error:
    print("MemoryError:", error)

# %% [markdown]
# 6 and 2, in all 8 (`*`: held by a table). Whoever asks for three blocks is refused, as only two
# can be had. In case 28 (SGLang #508, mllm #656) such sums were wrong after a split. Where a lock
# is a count at the node, a split has to give it to both halves, and the sums of what is locked have
# to follow. Here there is nothing to give: who holds a block is counted at the block, in the pool,
# and a split touches no block.
#
# In case 27 (mini-sglang #52) a lock covered the nodes above, and not the node itself. Why can that
# not happen here? A table is a whole path: it holds the block at the end and every block on the
# way.
#
# One more sum. The running request ends, and a new one finds `1 2 3` and holds only those. How many
# tokens are protected then?

# %%
desk.pool.free(running)
desk.pool.share(desk.index.match([1, 2, 3, 7], no_key))
print(desk.index.dump())
print("protected", desk.index.protected_tokens(), "evictable", desk.index.evictable_tokens())

# %% [markdown]
# Three. What stands below `1 2 3` is known, and nobody holds it.
#
# ## Why leaves go first
#
# When memory runs short, something has to go. It must be the end of a leaf. If `1 2 3` went, `4 5
# 6` behind it could never be found again and would fill memory for nothing. So SGLang notes the
# leaves that nobody has locked, makes a *heap* of them (a list that gives its smallest element
# first, here the one longest unused), and evicts from that.
#
# We need none of it. The pool of lesson 02 is enough: freed blocks with a hash go to the queue's
# end, and a table is freed from its end. (The tree gives every block that it knows a number as its
# "hash".) Try it. A runs with `1 2 3 4`, then B with `1 2 8 9`, and A finishes before B. Write the
# queue down.

# %%
from minipaged.viz.figures import show_pool, side_by_side

desk = Desk(RadixPrefixCache, 1, 6)
a, b = desk.start(1, 2, 3, 4), desk.start(1, 2, 8, 9)


def picture(title, **held):
    return show_pool(6, held, queue=desk.pool.free_queue, columns=6, title=title)


both = picture("both run", A=a, B=b)
desk.pool.free(a)
one = picture("A has finished", B=b)
desk.pool.free(b)
side_by_side(both, one, picture("B has finished"))

# %% [markdown]
# A frees 3 and 2; the blocks 0 and 1 are still B's. Then B frees 5, 4, 1 and 0. Now hand blocks out
# one by one, and look at the tree each time:

# %%
print("\n".join(desk.index.dump().splitlines()[1:]))
for _ in range(4):
    (taken,) = desk.take(1)
    print(f"block {taken} is handed out:")
    print("\n".join(desk.index.dump().splitlines()[1:]))

# %% [markdown]
# Each time the last page of a leaf went. `forget` cuts the end off a node, and an empty node leaves
# its parent. Once 3 is gone, nothing branches off between `1 2` and `8 9`, and still they are two
# nodes: nobody joins them again. Joined, they would find the same.
#
# Is that luck? Take any page and one that stands below it. Whoever holds the lower one holds the
# upper one as well. So the upper one cannot come free earlier, and if one call frees both, it works
# from the end: the lower one is queued first. **On the free queue every block stands behind all
# blocks below it.** No heap, no lock counts, no time stamps; the order of the queue is all of it,
# and it is LRU.
#
# *What if `forget` is called for a block in the middle all the same?* Then all that stands behind
# it is dropped with it. Your index has to do that as well.
#
# ## The same twice
#
# A and B have the same prompt of nine tokens and arrive in the same step. Neither finds anything,
# so both compute two full blocks. The hash index keeps both copies. And the tree? Compare the
# tables after the first step; the picture is the tree's.

# %%
from minipaged import SamplingParams
from minipaged.simulate import simulate
from minipaged.viz.widgets import step_through
from minipaged.workload import Arrival


def request(name, prompt, step=0, outputs=8):
    params = SamplingParams(max_tokens=outputs, ignore_eos=True)
    return Arrival(name, list(prompt), params, step)


twins = [request("A", range(1, 10)), request("B", range(1, 10))]
for kind in ("hash", "radix"):
    trace = simulate(twins, enable_prefix_caching=kind, block_size=4, num_blocks=12)
    for record in trace.steps[:2]:
        print(f"{kind:6}step {record.step}: {record.tables}, {record.num_free} free")
step_through(trace, step=1)

# %% [markdown]
# In the tree there is one place for a prefix, and A's blocks 0 and 1 stand in it when B publishes
# its own. So `publish` answers with *swaps*: entry 0 of your table, use block 0; entry 1, use
# block 1. The manager exchanges them, and blocks 3 and 4 are free again. The third block of each is
# not full and stays its own.
#
# *Are the numbers in A's blocks really B's?* The same tokens behind the same tokens: yes, up to
# rounding. That is what every hit relies on.
#
# **Exercise 10.2** is the index: match, publish with split and swaps, forget.
#
# ## Four conversations, three engines
#
# Four visitors talk to one assistant. Each turn's prompt is all that was said before, with twelve
# new tokens behind it. Which part of it is known? Everything but the twelve and what did not fill a
# page. Which of the two indexes will find more tokens?

# %% tags=["nbval-ignore-output"]
import random
import timeit

from minipaged.clock import VirtualClock
from minipaged.config import EngineConfig
from minipaged.course.cost import cost_of
from minipaged.engine import Engine
from minipaged.exec.sim_exec import SimExecutor


def talk(kind, visitors=4, turns=6):
    """All turns of all visitors; returns what was said and the engine."""
    draw = random.Random(10)
    config = EngineConfig.of(num_blocks=300, max_model_len=1024, enable_prefix_caching=kind)
    engine = Engine(config, SimExecutor(config.cache), clock=VirtualClock())
    intro = [draw.randrange(50_000) for _ in range(48)]
    said = [list(intro) for _ in range(visitors)]
    for turn in range(turns):
        for visitor, words in enumerate(said):
            words += [draw.randrange(50_000) for _ in range(12)]
            engine.add_request(f"{visitor} {turn}", words, SamplingParams(max_tokens=20))
        while engine.has_unfinished_requests():
            for output in engine.step():
                said[int(output.request_id.split()[0])] += output.new_token_ids
    return said, engine


runs = {kind: talk(kind) for kind in ("off", "hash", "radix")}
prompt = runs["off"][0][0]
print("        tokens found  computed of prompts")
for kind, (said, engine) in runs.items():
    hits = engine.metrics.prefix_cache_hits_total
    total = sum(48 + 12 * (turn + 1) + 20 * turn for turn in range(6)) * 4
    print(f"{kind:6}{hits:14}{total - hits:21}   same words: {said == runs['off'][0]}")
for kind in ("hash", "radix"):
    index = runs[kind][1].manager.prefix.cache
    steps = cost_of(index.match, prompt, no_key)
    pages = len(index.match(prompt, no_key))
    once = min(timeit.repeat(lambda i=index: i.match(prompt, no_key), number=200)) / 200
    print(f"{kind:6}one match of {pages} pages: {steps} steps, {1e6 * once:.0f} µs")

# %% [markdown]
# Neither. Both know the same pages, so both find the same, and the words do not depend on it. The
# walk takes one and a half times as many steps of Python as the chain, and yet less time (that of
# the machine that ran the cell): SHA-256 is a single step, and not a short one.
#
# So which one? A tree needs no trust in a hash, knows each prefix once, and can be asked for its
# structure. The hash has no links that a fault could tear, and a hash means the same in every
# machine that begins its chains with the same bytes: by it, a block can be found in another
# machine's memory.
#
# ## Who comes next
#
# An index can be asked about requests that are not admitted yet, and so help to decide whose turn
# it is. (The hash index could, too; SGLang came to it with its tree.) Four groups, six requests
# each; a group shares a beginning of 64 tokens, 12 more are each one's own, and an answer has 8.
# They arrive interleaved, A0 B0 C0 D0 A1 …, into a pool of 12 blocks of 16, where at most two run
# at once. How many tokens can be found at best? And first come, first served (`fcfs`)?
#
# At best all but the first of each group find 64: 20 · 64 = 1,280. In order of arrival they find
# nothing. Each needs 6 blocks for its 83 stored tokens, so two of them fill the pool, and when A1
# comes, C0 and D0 have long taken what A0 left. The other order, *longest prefix match*
# (`order="lpm"`), asks the index about those in line (the first 32) and admits whoever finds most.

# %%
from dataclasses import replace

from minipaged import Components


def prompts(seed, groups):
    """An endless row of prompts of 76 tokens, of the groups in turn."""
    draw = random.Random(seed)
    shared = [[draw.randrange(50_000) for _ in range(64)] for _ in range(groups)]
    while True:
        for beginning in shared:
            yield beginning + [draw.randrange(50_000) for _ in range(12)]


def longest_match(waiting, manager):
    return max(waiting, key=lambda request: len(manager.prefix.match(request)))


def serve(arrivals, order, **memory):
    """The trace, and for each request: tokens found, steps waited."""
    if order == "no guard":
        parts = replace(Components(), order=longest_match)
    else:
        parts, memory = Components(), memory | {"order": order}
    trace = simulate(arrivals, components=parts, enable_prefix_caching="radix", **memory)
    seen = {}
    for record in trace.steps:
        for work in record.work:
            seen.setdefault(work.request_id, (work.start_position, record.step))
    came = {one.request_id: one.arrival_step for one in arrivals}
    return trace, {name: (found, step - came[name]) for name, (found, step) in seen.items()}


row = prompts(1, groups=4)
interleaved = [request(f"{'ABCD'[i % 4]}{i // 4}", next(row)) for i in range(24)]
for order in ("fcfs", "lpm"):
    trace, seen = serve(interleaved, order, num_blocks=12, max_num_seqs=2)
    computed = sum(record.num_tokens for record in trace.steps)
    print(f"{order:9}found {sum(f for f, _ in seen.values()):5}, computed {computed:5}")

# %% [markdown]
# From nothing to 1,216. It costs somebody something: whoever matches nothing is passed over. Take a
# stream of one popular group, a new request every four steps, which is as many as the engine can
# serve, and one guest, Z, with a prompt of its own. Z comes in step 13. The engine's `lpm` has a
# *guard* against what now happens to Z; the line `no guard` is the same order without it.

# %%
row, guest = prompts(2, groups=1), prompts(3, groups=1)
stream = [request(f"A{i}", next(row), 4 * i) for i in range(30)]
stream.append(request("Z", next(guest), 13))
for order in ("fcfs", "no guard", "lpm"):
    _, seen = serve(interleaved, order, num_blocks=12, max_num_seqs=2)
    found = sum(found for found, _ in seen.values())
    _, seen = serve(stream, order, num_blocks=24, max_num_seqs=2)
    print(f"{order:9}the groups find {found:5}, Z waits {seen['Z'][1]:4} steps")

# %% [markdown]
# Without the guard Z waits until the stream has run dry: it *starves*. The guard is a number, the
# *patience*. Once the first in line has been passed over so often (8 times in
# `minipaged/sched/order.py`), it is next, whatever the others match. Z waits for eight others, one
# every four steps: 32 steps on top of the 3 that it waits in order of arrival. The guard costs a
# little of what was won, 1,216 in place of 1,280, and makes every wait finite.
#
# **Exercise 10.3** is this rule. Now the pool: from which size on does first come, first served
# find all 1,280? And what does the other order find there? Move the sliders.

# %%
from minipaged.viz.plots import bars
from minipaged.viz.widgets import explore


def compare(num_blocks, at_once):
    """Found and computed, in both orders."""
    parts = {"found": [], "computed": []}
    for order in ("fcfs", "lpm"):
        trace, seen = serve(interleaved, order, num_blocks=num_blocks, max_num_seqs=at_once)
        parts["found"].append(sum(found for found, _ in seen.values()))
        parts["computed"].append(sum(record.num_tokens for record in trace.steps))
    return bars(["fcfs", "lpm"], parts, title="tokens of the 24 requests", ylabel="tokens")


explore(
    compare,
    start={"num_blocks": 16, "at_once": 2},
    num_blocks=[9, 10, 12, 16, 18, 20, 21, 24, 32],
    at_once=(1, 3, 1),
)

# %% [markdown]
# From 21 on. The four beginnings are 16 blocks, and two that run need two more each: 20. But a
# request that ends leaves a fifth page known, 12 tokens of its own and 4 of its answer. B0's stands
# behind A's beginning in the queue, and with 20 blocks the last page of that beginning is lost in
# its place. Longest match finds 64 less with 21 blocks, and with 32. Towards the end D0 and D1
# stand first in line, match nothing, and are admitted in the same step, so D1 cannot find what D0
# is only about to compute. In order of arrival neighbours are strangers. So an order that asks the
# cache is worth most where memory is too small for all that is shared, and elsewhere it may cost
# something.
#
# ## Where this is in other engines
#
# - **minipaged**: `minipaged/cache/radix_prefix.py` (its `publish` goes on from the last known
#   block instead of starting at the root), `minipaged/sched/order.py`.
# - **SGLang**: `RadixCache` in `python/sglang/srt/mem_cache/radix_cache.py`. `match_prefix` splits,
#   `insert` returns how much was known already, `evict` works on a heap of unlocked leaves,
#   `inc_lock_ref` walks from a node up to the root and counts each node. Duplicates are freed in
#   `cache_unfinished_req`, which writes the tree's slots into the request's table. The orders are
#   in `python/sglang/srt/managers/schedule_policy.py`; `"lpm"` becomes first come, first served
#   while more than 128 wait, and of several in line that begin alike and match little, only one is
#   let in first.
# - **mini-sglang**: `RadixPrefixCache` in `python/minisgl/kvcache/radix_cache.py`; `_tree_walk` and
#   `split_at` are short and close to your exercise.
# - **vLLM** and **nano-vllm** have no tree: they hash, as in lesson 09.
#
# ## Check yourself
#
# Exercise 10.4 asks six questions with other numbers. Behind it is one without points: why can our
# tree do without locks and a heap, and when could it not?
#
# ## Next
#
# Open `exercises/10_radix_tree.ipynb`. In lesson 11 the blocks are read on a GPU: a kernel that
# looks up the table by itself.
