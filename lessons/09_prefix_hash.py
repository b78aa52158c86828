# %% [markdown]
# # 09 · Prefix caching by hash
#
# **The question.** Every prompt begins with the same introduction: who the assistant is, what it
# may say, a few examples. Ten visitors come, and the engine computes the keys and values of the
# introduction ten times. They come out the same ten times. How does it find what it has already?
#
# By a hash of each block, chained to the block before. You will write the chain, the index that
# looks blocks up, and a pool that keeps what may be wanted again. Allow 60 minutes with the
# exercises.

# %% [markdown]
# ## What is computed twice
#
# An introduction of 3,000 tokens, and a question of 30 behind it. Which share of the second
# visitor's prompt was computed before?
#
# 3,000 of 3,030, or 99.0 %. Whole blocks only: with blocks of 16 those are 187, and 2,992 tokens.
# In general the share is
#
#     prefix / (prefix + rest)
#
# where *prefix* is what both prompts have in common from their first token on, up to the first
# difference. Why from the first token on? A token's keys and values depend on all tokens before it
# and on none behind it. So equal beginnings have equal keys and values, whatever follows. Equal
# middles do not.
#
# Here is such a run, with blocks of 4. All four prompts begin with the same 12 tokens; the last two
# numbers of each line are the step before which it arrives and the tokens of its answer. `simulate`
# runs the real engine over the ledger of lesson 02: a number in each slot instead of keys and
# values, and outputs that follow from the slots that were read.

# %%
from minipaged import Components, SamplingParams
from minipaged.simulate import simulate
from minipaged.viz.widgets import step_through
from minipaged.workload import Arrival


def request(name, prompt, step=0, outputs=4):
    params = SamplingParams(max_tokens=outputs, ignore_eos=True)
    return Arrival(name, list(prompt), params, step)


intro = [*range(100, 112)]
visitors = [
    request("A", [*intro, 1, 2, 3], 0, 6),
    request("B", [*intro, 4, 5, 6, 7, 8], 2, 8),
    request("C", [*intro, 9], 2, 5),
    request("D", [*intro, *range(20, 30)], 10, 4),
]
trace = simulate(visitors, enable_prefix_caching="hash", block_size=4, num_blocks=14)
step_through(trace, step=2)

# %% [markdown]
# In step 2 B and C arrive. Their tables begin with A's blocks 0, 1 and 2 ("+": several holders), so
# B computes 5 tokens of 17 and C one of 13. Step on to 10: the others have left, all blocks were
# free, and D still begins with 0, 1 and 2. A freed block keeps what it holds until it is handed out
# again; that was the point of the queue in lesson 02. What is new is that somebody *finds* it.
#
# ## A dictionary, and what is wrong with it
#
# Who finds it is the *index*. The engine makes three calls to it. `match` is asked when a request
# is about to be admitted: which blocks hold the beginning of this prompt? These are its *hits*, and
# its table begins with them. `publish` is told after a step which entries of a table are full and
# computed. `forget` is told when the pool hands a block out again. The index holds no block: it has
# no reference of its own, so nothing stays occupied on its account.
#
# A dictionary from tokens to block will do, it seems. (`key` has its own section below; this index
# does not use it. `set_hash` tells the pool that a block is known.)


# %%
from dataclasses import replace


class ByOwnTokens:
    """Knows each block by the tokens that stand in it."""

    def __init__(self, block_size, pool):
        self.size, self.pool, self.block_with = block_size, pool, {}

    def tokens(self, token_ids, entry):
        return tuple(token_ids[entry * self.size :][: self.size])

    def match(self, token_ids, key):
        hits = []
        for entry in range((len(token_ids) - 1) // self.size):  # one token is left: see below
            tokens = self.tokens(token_ids, entry)
            if tokens not in self.block_with:
                return hits
            hits.append(self.block_with[tokens])
        return hits

    def publish(self, token_ids, block_ids, first, last, key):
        for block_id, entry in zip(block_ids[first:last], range(first, last), strict=True):
            self.block_with.setdefault(self.tokens(token_ids, entry), block_id)
            self.pool.set_hash(block_id, "known")
        return []  # there is nothing to report; lesson 10's index will have something

    def forget(self, block_id):
        self.block_with = {t: b for t, b in self.block_with.items() if b != block_id}


def tokens_of(trace, name):
    work = [w for record in trace.steps for w in record.work if w.request_id == name]
    return [token for w in work for token in w.sampled]


def table_of(trace, name):
    return next(record.tables[name] for record in trace.steps if name in record.tables)


nines = [9, 9, 9, 9]
three = [
    request("A", [1, 2, 3, 4, *nines, 50], 0, 3),
    request("B", [5, 6, 7, 8, *nines, 50], 4, 3),
    request("C", [5, 6, 7, 8, *nines, 50], 8, 3),
]
memory = {"block_size": 4, "num_blocks": 12}
runs = {
    "no cache": simulate(three, **memory),
    "own tokens": simulate(
        three, components=replace(Components(), prefix_cache=ByOwnTokens), **memory
    ),
    "engine's": simulate(three, enable_prefix_caching="hash", **memory),
}
for name, run in runs.items():
    for who in "BC":
        print(f"{name:11}{who}  table {table_of(run, who)}  tokens {tokens_of(run, who)}")

# %% [markdown]
# C's prompt is B's, so its answer must be B's. With this index it is another one. C's table is `[2,
# 1, 4]`: block 2 is B's and holds 5 6 7 8, but block 1 is *A's* 9 9 9 9, computed behind 1 2 3 4.
# The same tokens, other keys and values, and no error anywhere.
#
# > **Claim C10, recomputed.** *Without the parent's hash, "abc" + "def" and "abcd" + "ef" look the
# > same.* With blocks of a fixed size that cannot happen. What does happen you have just seen: `[1
# > 2 3 4 | 9 9 9 9]` and `[5 6 7 8 | 9 9 9 9]` share their second block.
#
# ## A chain
#
# So a block has to be known by all tokens up to its end. Take them all as the dictionary's key, and
# every answer is right. How long are the keys of one prompt of 4,096 tokens, in tokens, all its
# blocks of 16 together?
#
# 256 keys of 16, 32, … 4,096 tokens: 16 · 256 · 257 / 2 = 526,336 tokens for 4,096. The cost grows
# with the square of the length.
#
# A *hash* cuts the key short. It makes a number of fixed length (its *digest*) out of any text, and
# the same number out of the same text. SHA-256 gives 256 bits: 32 bytes, or 64 hex digits. Nobody
# has ever found two texts with the same ones. Now hash each block's tokens *together with the hash
# of the block before it*. That hash stands for everything earlier, so the new one stands for the
# whole prefix, and each block costs one hash of 32 bytes and 16 tokens, wherever it stands. That is
# a *chain*, and the hash in front is the *parent*.

# %%
from minipaged.cache.hash_prefix import HashPrefixCache
from minipaged.cache.pool import BlockPool

no_key = ("", "")
pool = BlockPool(8)
index = HashPrefixCache(4, pool, root=b"lesson 09")  # the root is random otherwise: see below
index.publish([1, 2, 3, 4, *nines], pool.allocate(2), 0, 2, no_key)
index.publish([5, 6, 7, 8, *nines], pool.allocate(2), 0, 2, no_key)
for block_id, tokens in enumerate(["1 2 3 4", "9 9 9 9", "5 6 7 8", "9 9 9 9"]):
    print(f"block {block_id}: {tokens}   hash {pool.block_hash(block_id).hex()[:16]}…")

# %% [markdown]
# Blocks 1 and 3 hold the same tokens and have different hashes. To find a prompt, walk: hash the
# first block, look it up, hash the next with that as parent, and stop at the first miss.
#
# *And if the block before was forgotten, and the block behind it not?* Then the walk stops before
# it. It is not found, does no harm, and is found again once the missing one is published anew.
#
# One trap is in what is hashed. Write tokens behind one another without a separator, and `[1, 23]`
# and `[12, 3]` are the same text.
#
# ## Is a hash enough?
#
# Somebody keeps only 16 hex digits of each hash, 64 bits, to save memory. With n blocks there are
# about n² / 2 pairs, and each pair agrees with probability 1 / 2⁶⁴. So two of them agree with
# probability n² / 2⁶⁵, as long as that is small. (It is called the *birthday bound*: of 23 people
# two have the same birthday, more likely than not.) How much is that for 10⁹ blocks? Work it out
# before you run the cell; 2⁶⁵ is 3.7 · 10¹⁹.

# %%
for bits in (64, 128, 256):
    chances = [n * n / 2 ** (bits + 1) for n in (10**6, 10**9)]
    print(f"{bits:3} bits: 10^6 blocks {chances[0]:.1e}   10^9 blocks {chances[1]:.1e}")

# %% [markdown]
# > **Claim C11, recomputed.** *A prefix cache may key its blocks by 16 hex digits of SHA-256.* At
# > 10⁹ blocks two of them agree with probability 2.7 %. With all 256 bits it is 4.3 · 10⁻⁶⁰.
#
# One engine has far fewer blocks, so are 64 bits enough after all? Chance is not the worst. By the
# same bound somebody who *searches* for two prompts with one hash needs some 2³² tries, about 4 ·
# 10⁹: an hour for one core of a processor. And what would such a *collision* do? A visitor gets an
# answer to somebody else's words.
#
# There are two ways out, and our index takes both: keep all bits, and keep what was hashed and
# *compare it on a hit*. Since the pool loses the end of a prefix before its beginning, the worst
# that a weak hash does then is to miss a hit. It costs memory: 400 to 500 bytes a known block here,
# beside the 2 MiB that a block of 16 tokens has in Llama-3-8B.
#
# ## Who may share
#
# Two strings stand before the tokens of the first block, and through the chain they are in every
# hash; the code calls the pair (salt, adapter) `key`. The second names the *adapter*, a set of
# changes to the model's weights: with it the same tokens have other keys and values. The first is
# the *salt*. A hit is faster than a miss, and everybody can measure how long the first token takes.
# So whoever guesses a prompt can test whether somebody has sent it before, block by block. Visitors
# who must not learn that of each other (*tenants*) get different salts and share nothing.
#
# The engine takes the salt with the request, `add_request(..., cache_salt="x")`. Mind the seam
# between the two strings: written one behind the other, the first two keys below are both `X`.

# %%
prompt = [1, 2, 3, 4, 5]
index = HashPrefixCache(4, BlockPool(8))
index.publish(prompt, [0], 0, 1, ("", "X"))  # no salt, adapter X
for key in (("", "X"), ("X", ""), ("", "")):
    print(f"salt {key[0]!r:4} adapter {key[1]!r:4} hits {index.match(prompt, key)}")

# %% [markdown]
# Before both stands the *root*, 32 random bytes that the index draws when it is made. With a
# constant in its place anybody could work out the hash of a guessed prompt at home, and search for
# two prompts that collide.
#
# **Exercise 09.1** is the chain, with both strings and the root.
#
# ## When a block is known
#
# Four requests, blocks of 4. A and B are the same 9 tokens in the same step. C is the same again,
# one step later, while A still runs. D is the first 8 of these tokens. How many tokens does each
# find in the cache?


# %%
def first_work(trace):
    for name in sorted({w.request_id for record in trace.steps for w in record.work}):
        record, work = next((r, w) for r in trace.steps for w in r.work if w.request_id == name)
        yield f"{name}  step {record.step}: found {work.start_position}, computed {work.num_tokens}"


nine = range(1, 10)
four = [request("A", nine), request("B", nine), request("C", nine, 1), request("D", nine[:8], 2)]
print(*first_work(simulate(four, enable_prefix_caching="hash", **memory)), sep="\n")

# %% [markdown]
# A and B find nothing: when the step was planned, nothing was computed. They compute the same twice
# and leave *twins*, two blocks with the same contents; both are known, and one serves when the
# other is gone. C finds 8. Not 9: the ninth token's block is not full. A block that is not full is
# still being written, so it is never known.
#
# *Why not publish when the blocks are handed out, so that B finds A's at once?* Because they may
# never be written. A long prompt is computed in pieces, a *chunk* a step. If A is aborted between
# two chunks, its later blocks were handed out and hold nothing of A's, and a later prompt reads
# rubbish under A's hash. The exercises plant this fault.
#
# D asks for 8 tokens, and 8 are known. It finds 4. To choose the next token the engine needs the
# model's output for the last prompt token, and the cache has only keys and values of it. So at
# least one token must be computed; and because hits are whole blocks, it is the last block, 4
# tokens.
#
# **Exercise 09.2** is the index.
#
# ## What is lost first
#
# The pool decides how long a hit is possible. Its rules from lesson 02: a freed block with a hash
# goes to the end of the queue, one without to the front, and a table is freed from its end. Here A
# holds `[0, 1, 2, 3]`, and all but 3 are known; B holds 4. The queue is `5 6 7`. A finishes. Write
# the queue down, then run the cell.

# %%
from minipaged.viz.figures import show_pool

pool = BlockPool(8)
a, b = pool.allocate(4), pool.allocate(1)
for block_id in a[:3]:
    pool.set_hash(block_id, b"known")
pool.free(a)
show_pool(8, {"B": b}, queue=pool.free_queue, columns=8, title="after A has finished")

# %% [markdown]
# 3 comes first: nobody can find it, so it is no loss. Then what was never used. Of A's prefix block
# 2 goes before 1 and 0: a prefix without its end is worth something, an end without its prefix is
# never found. And among the known blocks of several requests those go first that have waited
# longest. That order is called LRU, *least recently used*.
#
# An idle hit (known, and held by nobody) is taken off that queue, and so it needs memory. 5 blocks
# are free, two of them are the hits, and 4 more are wanted: that is 6 of 5, and has to be refused,
# before anything is shared. A hit that somebody holds needs none. (vLLM #11565 is this case.)
#
# **Exercise 09.3** is the pool with these rules.
#
# A preempted request profits as well. It loses its blocks and waits in line again (lesson 08). But
# its full blocks are known and stand at the end of the queue, so what it finds when it comes back
# is often its own:

# %%
pair = [request("A", range(10), 0, 14), request("B", range(50, 60), 0, 14)]
for kind in ("off", "hash"):
    run = simulate(pair, enable_prefix_caching=kind, block_size=4, num_blocks=9)
    back = [w for r in run.steps for w in r.work if w.request_id == "B" and w.num_tokens > 1][-1]
    total = sum(record.num_tokens for record in run.steps)
    print(
        f"{kind:5}B comes back: {back.start_position:2} found, {back.num_tokens:2} computed;"
        f" {total} tokens computed in all"
    )

# %% [markdown]
# These 12 are not counted in `prefix_cache_hits_total`, the engine's count of tokens found: it is to
# say how much visitors have in common, and not how short of memory the engine is.
#
# ## What it costs if nothing repeats
#
# Does a cache take memory from those who need it? Twenty prompts that share nothing, in a pool of
# 16 blocks that is too small for all of them at once:

# %%
from minipaged.workload import SyntheticWorkload

strangers = SyntheticWorkload(requests=20, prompt_len=(16, 64), output_len=(4, 16)).arrivals()
runs = [
    # admission_headroom: whoever enters leaves so many blocks free, so that nobody is preempted
    simulate(strangers, enable_prefix_caching=kind, num_blocks=16, admission_headroom=2)
    for kind in ("off", "hash")
]
free = [[record.num_free for record in run.steps] for run in runs]
print("steps, without and with a cache:", *map(len, free))
print("fewest free blocks:", *map(min, free))
print("as many free at every step:", free[0] == free[1])

# %% [markdown]
# Idle blocks stay on the free queue, and whoever needs one gets it. What is left is the work: a
# hash for each full block. The cell takes the time for it, on the machine that ran it. Beside it
# stands what the same 16 tokens take on a GPU by a *cost model*: the operations (FLOP) that
# Llama-3-8B needs for them, divided by those that an H100 does in a second.

# %% tags=["nbval-ignore-output"]
import time

from minipaged.exec.sim_exec import CostModel

pool = BlockPool(256)
index, block_ids = HashPrefixCache(16, pool), pool.allocate(256)
start = time.perf_counter()
index.publish(range(4096), block_ids, 0, 256, no_key)
a_hash = (time.perf_counter() - start) / 256
cost = CostModel()
a_block = 16 * cost.flop_per_token / cost.peak_flops
print(f"a block: {1e6 * a_hash:.0f} µs to publish, {1e6 * a_block:.0f} µs to compute")

# %% [markdown]
# > **Claim C17, recomputed.** *A prefix cache locks memory up when prompts never repeat.* It does
# > not: the same steps, and the same number of free blocks at every one of them. The cost is the
# > bookkeeping, a small part of the computing even in Python.
#
# ## What it saves
#
# The time to the first token (*TTFT*), in milliseconds on the same cost model: A comes first, then
# B with the same prefix, and nobody else. Which share of the prompt is a prefix of 8,000 if 500
# tokens follow, and which if 12,000 follow? Work them out; the table has them.


# %%
def first_token_ms(trace, name):
    """Every prompt here is computed in one step, and nobody waits: the length of that step."""
    steps = (r for r in trace.steps if any(w.request_id == name for w in r.work))
    return 1000 * next(steps).elapsed


print("prefix   rest   prefix/prompt   TTFT of A and B")
for prefix, rest in [(3000, 30), (8000, 500), (8000, 3429), (8000, 12000)]:
    own_a, own_b = range(30_000, 30_000 + rest), range(60_000, 60_000 + rest)
    prompts = [[*range(prefix), *own_a], [*range(prefix), *own_b]]
    arrivals = [
        request(name, p, 10 * i, 1) for i, (name, p) in enumerate(zip("AB", prompts, strict=True))
    ]
    run = simulate(arrivals, enable_prefix_caching="hash", max_num_batched_tokens=32_768)
    cold, warm = first_token_ms(run, "A"), first_token_ms(run, "B")
    saved = f"{cold:5.1f} -> {warm:5.1f} ms: {1 - warm / cold:.0%} less"
    print(f"{prefix:6}{rest:7}{prefix / (prefix + rest):15.1%}   {saved}")

# %% [markdown]
# In the first line the prefix is 99.0 % of the prompt, and only 86 % of the time is saved. Whole
# blocks are found, so 38 tokens are computed; and the model's weights still have to be read once,
# which takes longer than that.
#
# > **Claim C20, recomputed.** *TTFT falls by 40 to 70 % for a system prompt of 8,000 tokens, and 99
# > % of prefill (computing the prompt) is saved for a prefix of 3,000.* Both are prefix / (prefix +
# > rest) for a rest that is not named: 30 tokens behind 3,000, and 12,000 to 3,429 behind 8,000.
# > With 500 behind 8,000 TTFT falls by 93 %. Time in the queue comes on top, and falls too when
# > those in front are done sooner.
#
# Now change the lengths. All prompts have the shared beginning and 20 tokens of their own; with
# `apart` 0 they arrive in the same step.

# %%
from minipaged.viz.plots import bars
from minipaged.viz.widgets import explore


def computed(shared, requests, apart):
    arrivals = [
        request(str(i), [*range(shared), *range(1000 + 20 * i, 1020 + 20 * i)], apart * i, 2)
        for i in range(requests)
    ]
    parts = {"shared beginning": [], "the rest": []}
    for kind in ("off", "hash"):
        run = simulate(arrivals, enable_prefix_caching=kind, block_size=16)
        work = [w for record in run.steps for w in record.work]
        begun = [
            max(0, min(shared, w.start_position + w.num_tokens) - w.start_position) for w in work
        ]
        parts["shared beginning"].append(sum(begun))
        parts["the rest"].append(sum(w.num_tokens for w in work) - sum(begun))
    return bars(["no cache", "hash"], parts, title="tokens computed", ylabel="tokens")


explore(
    computed,
    start={"shared": 100, "requests": 8, "apart": 1},
    shared=[0, 10, 16, 48, 100, 200, 400],
    requests=(1, 10, 1),
    apart=[0, 1],
)

# %% [markdown]
# 100 tokens are 6 whole blocks, 96 tokens, so 4 are computed by everybody: 100 + 7 · 4 = 128. With
# a beginning of 10 nothing is saved.
#
# ## Where this is in other engines
#
# - **minipaged**: `minipaged/cache/hash_prefix.py`. `_may_enter` in `minipaged/sched/scheduler.py`
#   counts idle hits as needed; `minipaged/cache/prefix.py` counts hits and evictions (known blocks
#   that were handed out again).
# - **vLLM**: `hash_block_tokens` in `vllm/v1/core/kv_cache_utils.py` hashes parent, tokens and
#   extra keys; the salt goes into the first block, and the root is random unless `PYTHONHASHSEED`
#   is set. `vllm/v1/core/block_pool.py` has the map from hash to block, twins included. Tokens are
#   not compared there: it relies on the hash.
# - **nano-vllm**: `compute_hash` in `nanovllm/engine/block_manager.py` is xxHash with 64 bits, much
#   faster than SHA-256 and no obstacle to somebody who looks for collisions. The block keeps its
#   tokens, and they are compared.
# - **SGLang** finds prefixes without a hash: `RadixCache` in
#   `python/sglang/srt/mem_cache/radix_cache.py` is a tree of them.
#
# ## Check yourself
#
# Exercise 09.4 asks seven questions with other numbers. An open question behind it has no points:
# what if there are several engines, and each has a cache of its own?
#
# ## Next
#
# Open `exercises/09_prefix_hash.ipynb`. Lesson 10 finds the same prefixes without a hash, by
# walking down a tree, and can say more about them: which prefix is shared by whom.
