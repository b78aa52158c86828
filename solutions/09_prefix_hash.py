# %% [markdown]
# # Exercises 09 · Prefix caching by hash
#
# A function, two classes and six questions. Lesson 09 (`lessons/09_prefix_hash.ipynb`) leads up to
# them. At the end of this notebook your index and your pool serve the tutor together.

# %% [markdown]
# ## 09.1 The chain
#
# Write `chain`: a SHA-256 digest for every full block of a prompt, as a text of 64 hex digits
# (`sha256(...).hexdigest()`).
#
# What is hashed for a block is a text, encoded as UTF-8 (that is what `.encode()` does). It has two
# parts, joined with nothing in between:
#
# 1. What stands before the block. For the first one that is `root + repr(key)`, for every other one
#    the digest of the block in front of it.
# 2. `str()` of the list of the block's tokens, such as `[1, 2, 3, 4]`.
#
# `key` is a pair of strings, salt and adapter. `root` is a text too. Tokens behind the last full
# block have no digest. A prompt without a full block gives an empty list.
#
# Only the next cell is graded. If it uses a helper, write that into it as well.

# %% exercise="09.1"
from hashlib import sha256


def chain(token_ids, block_size, key=("", ""), root=""):
    """A list with the digest of every full block, 64 hex digits each."""
    ### BEGIN SOLUTION
    digests, before = [], root + repr(key)
    for end in range(block_size, len(token_ids) + 1, block_size):
        text = before + str(token_ids[end - block_size : end])
        before = sha256(text.encode()).hexdigest()
        digests.append(before)
    return digests
    ### END SOLUTION


# %% check="09.1"
from minipaged.course.check import check

check("09.1", chain)

# %% [markdown]
# ## 09.2 The index
#
# Write `HashIndex`: which block of the pool holds which prefix. It knows what it was told by
# `publish` and forgets what it is told to forget; it allocates nothing and frees nothing. Seven
# rules:
#
# - **A prefix, not a block.** A block is found only behind exactly the tokens that it was published
#   behind, and under the same key (salt, adapter).
# - **Compare.** `hash_function` may give two different texts the same hash. A hit is believed only
#   if what was hashed is the same as well. Which of two colliding blocks stays known is up to you;
#   the other one, and all behind it, may stay unknown.
# - **Leave one.** `match` takes whole blocks only, and at least one token of the prompt stays out.
# - **Publish what you are told**, the entries `first` to `last - 1`, and nothing else. The entries
#   before `first` were matched or published earlier and are still known, unless a collision kept
#   them out. A block that is known already stays as it is. There is nothing to report: return `[]`
#   (the index of lesson 10 will have something).
# - **Twins stay.** Two blocks may hold the same. Both are known; `match` returns the one that was
#   published first, and once that is forgotten, the next.
# - **Forget one block**, never its twin, and not the blocks behind it either. They are not found
#   while a block before them is missing, and are found again when that is published anew. A block
#   that is not known is ignored.
# - **Tell the pool**: `pool.set_hash(block_id, a_hash)` when a block becomes known,
#   `pool.set_hash(block_id, None)` when it is forgotten.
#
# The root is given: 32 random hex digits, others for every index. The check makes your index over
# `PlainHashes` from `minipaged.course.fixtures`, which has nothing of a pool but `set_hash` and
# `block_hash`. How you find a prefix is up to you; a chain as in 09.1 is one good way. A block that
# is published costs one hash then, because the chain goes on from the block in front.


# %% exercise="09.2"
import hashlib
import random


def digest_of(text):
    """64 hex digits for a text."""
    return hashlib.sha256(text.encode()).hexdigest()


class HashIndex:
    """Which block holds which prefix."""

    def __init__(self, block_size, pool, hash_function=digest_of):
        """Nothing is known yet. hash_function: from a text to a text."""
        self.block_size, self.pool = block_size, pool
        self.hash_function = hash_function
        self.root = f"{random.SystemRandom().getrandbits(128):032x}"
        ### BEGIN SOLUTION
        self.hashed = {}  # hash -> the text that was hashed
        self.holders = {}  # hash -> blocks, in the order in which they were published
        self.hash_of = {}  # block -> hash
        ### END SOLUTION

    def match(self, token_ids, key):
        """A list of the blocks that hold the longest known prefix, the first one first."""
        ### BEGIN SOLUTION
        found, before = [], self.root + repr(key)
        for entry in range((len(token_ids) - 1) // self.block_size):
            text = before + self._tokens(token_ids, entry)
            before = self.hash_function(text)
            if self.hashed.get(before) != text:
                break
            found.append(self.holders[before][0])
        return found
        ### END SOLUTION

    def publish(self, token_ids, block_ids, first, last, key):
        """Make entries first … last - 1 of a block table known: they are full and computed.

        token_ids and block_ids are those of the whole sequence. Returns [].
        """
        ### BEGIN SOLUTION
        before = self.hash_of.get(block_ids[first - 1]) if first else self.root + repr(key)
        for entry in range(first, last if before else first):
            text = before + self._tokens(token_ids, entry)
            before = self.hash_function(text)
            if self.hashed.setdefault(before, text) != text:
                break  # a collision: this block stays unknown, and so do those behind it
            if block_ids[entry] not in self.hash_of:
                self.hash_of[block_ids[entry]] = before
                self.holders.setdefault(before, []).append(block_ids[entry])
                self.pool.set_hash(block_ids[entry], before)
        return []
        ### END SOLUTION

    def forget(self, block_id):
        """The pool has handed this block out again: its contents are lost."""
        ### BEGIN SOLUTION
        block_hash = self.hash_of.pop(block_id, None)
        if block_hash is None:
            return
        self.pool.set_hash(block_id, None)
        self.holders[block_hash].remove(block_id)
        if not self.holders[block_hash]:
            del self.holders[block_hash], self.hashed[block_hash]
        ### END SOLUTION

    def known_blocks(self):
        """A list of every known block, in ascending order."""
        ### BEGIN SOLUTION
        return sorted(self.hash_of)
        ### END SOLUTION

    def _tokens(self, token_ids, entry):
        """The tokens of one entry of a block table, as text. Yours to use or to delete."""
        start = entry * self.block_size
        return str(list(token_ids[start : start + self.block_size]))


# %% check="09.2"
from minipaged.course.check import check

check("09.2", HashIndex)

# %% [markdown]
# ## 09.3 The pool
#
# `CachingPool` is the pool of lesson 02, and much of it is given. Blocks have hashes now, so two of
# its methods are yours once more, `allocate` and `free`, and two are new:
#
# - `set_hash` notes what a block is known by, and `block_hash` (given) gives it back. It may be
#   called for a block that waits on the free queue; the block keeps its place.
# - `allocate` takes blocks from the head of the queue. Their contents are lost: nothing of it is
#   known any more.
# - `free` works its list off from the end. A block that nobody holds any more goes to the *end* of
#   the queue if it has a hash, and to the front if it has none.
# - `take` begins the table of a request: its hits, then `num_new` other blocks. The hits are known
#   blocks, each once, and keep their hashes. All or nothing: if it is refused, no count and no
#   place on the queue has changed. Count what it needs as in the lesson.
#
# As in 02.2 the check makes your pool with `PlainQueue`. The methods of a free queue are
# `pop_head()`, `append(id)`, `prepend(id)` and `remove(id)`. A double free must still be refused;
# the methods whose names begin with `refuse_` do that.


# %% exercise="09.3"
from collections import Counter


class CachingPool:
    """Reference counts over a fixed number of blocks, some of them known by a hash."""

    def __init__(self, num_blocks, make_queue):
        self.num_blocks, self.free_queue = num_blocks, make_queue(num_blocks)
        self.refcounts, self.hashes = [0] * num_blocks, [None] * num_blocks

    @property
    def num_free(self):
        """How many blocks nobody holds."""
        queue = self.free_queue
        return len(queue)

    def refcount(self, block_id):
        """How many tables hold the block."""
        return self.refcounts[block_id]

    def block_hash(self, block_id):
        """What the block is known by, or None."""
        return self.hashes[block_id]

    def share(self, block_ids):
        """One more holder for each block; one that was free leaves the queue."""
        self.refuse_unknown(block_ids)
        for b in block_ids:
            if self.refcounts[b] == 0:
                self.free_queue.remove(b)
            self.refcounts[b] += 1

    def refuse_unknown(self, block_ids):
        """ValueError if there is no such block."""
        for b in block_ids:
            if b not in range(self.num_blocks):
                raise ValueError(f"there is no block {b}: the last one is {self.num_blocks - 1}")

    def refuse_double_free(self, block_ids):
        """ValueError if there is no such block, or if one is freed more often than it is held."""
        self.refuse_unknown(block_ids)
        for b, times in Counter(block_ids).items():
            if times > self.refcounts[b]:
                raise ValueError(f"block {b} is held {self.refcounts[b]} times, not {times}")

    def set_hash(self, block_id, block_hash):
        """What the block is known by from now on; None if it is known no more."""
        ### BEGIN SOLUTION
        self.hashes[block_id] = block_hash
        ### END SOLUTION

    def allocate(self, count):
        """Hand out `count` blocks from the head of the queue, with one holder and no hash each."""
        if self.num_free < count:
            raise MemoryError(f"{self.num_free} blocks are free, {count} were asked for")
        ### BEGIN SOLUTION
        block_ids = [self.free_queue.pop_head() for _ in range(count)]
        for block_id in block_ids:
            self.refcounts[block_id], self.hashes[block_id] = 1, None
        return block_ids
        ### END SOLUTION

    def free(self, block_ids):
        """One holder fewer for each block, from the end of the list to its beginning."""
        self.refuse_double_free(block_ids)
        ### BEGIN SOLUTION
        for block_id in reversed(block_ids):
            self.refcounts[block_id] -= 1
            if self.refcounts[block_id] == 0:
                known = self.hashes[block_id] is not None
                (self.free_queue.append if known else self.free_queue.prepend)(block_id)
        ### END SOLUTION

    def take(self, hits, num_new):
        """A list of the hits, each with one more holder, and of `num_new` other blocks.

        MemoryError if too few are free; then nothing has changed.
        """
        ### BEGIN SOLUTION
        idle = sum(self.refcounts[block_id] == 0 for block_id in hits)
        if idle + num_new > self.num_free:
            raise MemoryError(f"{idle + num_new} free blocks needed, {self.num_free} there")
        self.share(hits)
        return [*hits, *self.allocate(num_new)]
        ### END SOLUTION


# %% check="09.3"
from minipaged.course.check import check

check("09.3", CachingPool)

# %% [markdown]
# ## 09.4 Questions
#
# Answer on paper first; every question takes a minute or two. Then fill in the dict.
#
# - **a.** Block size 16. All prompts begin with the same 1,000 tokens, and each goes on with 60
#   tokens of its own. The first was served. How many tokens of the second are computed?
# - **b.** Block size 16. A prompt of 64 tokens was served, and all its blocks are known. The very
#   same prompt comes again. How many of its tokens are computed?
# - **c.** Block size 4. Two prompts are known: `[1 2 3 4 | 9 9 9 9]` in the blocks 0 and 1, and
#   `[5 6 7 8 | 3 3 3 3]` in the blocks 2 and 3. The hashes of a faulty index cover each block's own
#   tokens only. Which blocks does its `match` return for `5 6 7 8 9 9 9 9 1`? A list.
# - **d.** A pool of 6. A holds `[0, 1, 2]`, all known. B holds `[3, 4]`, and only 3 is known. The
#   queue is `5`. A finishes, then B. Which ids does `allocate(3)` return? A list.
# - **e.** A request needs 9 blocks. 4 of them are hits: 1 is held by another request, 3 by nobody.
#   How many blocks must be free so that it can enter?
# - **f.** By the birthday bound, what is the probability, in percent, that two of 10⁸ blocks have
#   the same 64-bit hash? Three digits are enough.
# - **g.** A pool of 8, prefix caching on. Three requests come one after another, with prompts that
#   have nothing in common. Each takes two blocks, fills both exactly, and ends; nobody else is
#   there. How many blocks can now be handed out, and if 5 are, how many of the six known blocks are
#   lost? A list of two numbers.


# %% exercise="09.4"
def answers():
    """Your answers by letter: lists for c, d and g, numbers for the others."""
    ### BEGIN SOLUTION
    return {"a": 68, "b": 16, "c": [2, 1], "d": [4, 5, 2], "e": 8, "f": 0.0271, "g": [8, 3]}
    ### END SOLUTION


# %% check="09.4"
from minipaged.course.check import check

check("09.4", answers)

# %% [markdown]
# ## Run it
#
# Run these cells once the checks have passed. First your pool and your index over the ledger, with
# prompts that begin alike and a pool so small that known blocks are handed out again. The cell
# counts the calls of your index in a class derived from yours.

# %%
from dataclasses import replace

from minipaged import Components, SamplingParams
from minipaged.simulate import simulate
from minipaged.workload import Arrival

calls = {"match": 0, "published blocks": 0, "forgotten blocks": 0}


class CountedIndex(HashIndex):
    def match(self, token_ids, key):
        calls["match"] += 1
        return super().match(token_ids, key)

    def publish(self, token_ids, block_ids, first, last, key):
        calls["published blocks"] += last - first
        return super().publish(token_ids, block_ids, first, last, key)

    def forget(self, block_id):
        calls["forgotten blocks"] += block_id in self.known_blocks()
        super().forget(block_id)


def request(name, prompt, step=0, outputs=6):
    params = SamplingParams(max_tokens=outputs, ignore_eos=True)
    return Arrival(name, list(prompt), params, step)


def tokens_of(trace):
    """What each request got: its id and its tokens."""
    tokens = {}
    for record in trace.steps:
        for work in record.work:
            tokens.setdefault(work.request_id, []).extend(work.sampled)
    return tokens


def computed(trace):
    return sum(record.num_tokens for record in trace.steps)


intro = range(100, 118)
work = [request(str(i), [*intro, *range(10 * i, 10 * i + 3 + i % 5)], 2 * i) for i in range(1, 9)]
memory = {"block_size": 4, "num_blocks": 20}
yours = replace(Components(), prefix_cache=CountedIndex, block_pool=CachingPool)
with_yours = simulate(work, components=yours, **memory)
without = simulate(work, **memory)
reference = simulate(work, enable_prefix_caching="hash", **memory)

print("calls of your index:", calls)
print("tokens computed without a cache, and with yours:", computed(without), computed(with_yours))
print("same outputs as without a cache:  ", tokens_of(with_yours) == tokens_of(without))
same = [r.tables for r in with_yours.steps] == [r.tables for r in reference.steps]
print("same blocks as with the reference:", same)

# %% [markdown]
# The last line says that your pool handed out the very same blocks at every step.
#
# Now the tutor. It puts the same 70 tokens before every question: a mark, a system prompt of 68
# letters (a letter is a token here) and another mark. With blocks of 16, how many of them can a
# second question find? One question goes first, so that there is something to find.

# %%
from minipaged import LLM

questions = ["What is a slot?", "What is a block table?", "What is EOS?", "What is preemption?"]
parts = replace(Components(), prefix_cache=HashIndex, block_pool=CachingPool)
llm = LLM("tutor", components=parts, block_size=16, num_blocks=64)


class Checked:
    """Watches the engine: checks the cache after every step."""

    steps = 0

    def event(self, kind, request_id, detail=""):
        pass

    def planned(self, engine, plan):
        pass

    def committed(self, engine, plan, result, outputs):
        engine.manager.check()
        self.steps += 1


checked = Checked()
llm.engine.observers.append(checked)
texts = [answer.text for answer in llm.generate(questions[:1])]
texts += [answer.text for answer in llm.generate(questions[1:])]
for question, text in zip(questions, texts, strict=True):
    print(question, "-", text[:60])
metrics = llm.engine.metrics
print(f"{checked.steps} steps checked")
print(f"{metrics.prefix_cache_hits_total} of {metrics.prefix_cache_queries_total} tokens found")
reference_texts = [answer.text for answer in LLM("tutor").generate(questions)]
print("same texts as the reference:", texts == reference_texts)

# %% [markdown]
# 4 whole blocks of the 70 tokens are 64, and three questions find them: 192. The other 16: "What is
# a block table?" goes on as "What is a slot?" does, up to the end of its fifth block.
#
# ### A weak hash
#
# Your index once more, with a hash function that has three values. What should become of the hits,
# and what of the outputs?


# %%
class WeakIndex(HashIndex):
    def __init__(self, block_size, pool):
        super().__init__(block_size, pool, lambda text: str(len(repr(text)) % 3))


weak = simulate(work, components=replace(yours, prefix_cache=WeakIndex), **memory)
print("tokens computed:", computed(weak))
print("same outputs as without a cache:", tokens_of(weak) == tokens_of(without))

# %% [markdown]
# Hits are lost, and no answer is wrong. That is what the comparison is for.
#
# ### Plant a fault: no parent
#
# This index is yours, except that it publishes and looks up every block as if it were a prompt of
# its own. Guess what the second visitor with B's prompt will get.


# %%
class NoParent(HashIndex):
    def cut(self, token_ids, last):
        size = self.block_size
        return [token_ids[entry * size : (entry + 1) * size] for entry in range(last)]

    def publish(self, token_ids, block_ids, first, last, key):
        for entry, tokens in enumerate(self.cut(token_ids, last)):
            if entry >= first:
                super().publish(tokens, [block_ids[entry]], 0, 1, key)
        return []

    def match(self, token_ids, key):
        hits = []
        for tokens in self.cut(token_ids, (len(token_ids) - 1) // self.block_size):
            hit = super().match([*tokens, 0], key)
            if not hit:
                break
            hits += hit
        return hits


nines = [9, 9, 9, 9]
three = [
    request("A", [1, 2, 3, 4, *nines, 50], 0, 3),
    request("B", [5, 6, 7, 8, *nines, 50], 4, 3),
    request("B again", [5, 6, 7, 8, *nines, 50], 8, 3),
]
for index in (HashIndex, NoParent):
    got = tokens_of(simulate(three, components=replace(yours, prefix_cache=index), **memory))
    print(f"{index.__name__:9} B {got['B']}, again {got['B again']}")

# %% [markdown]
# ### Plant a fault: known before it is computed
#
# A prompt of 12 tokens comes in chunks of 6, and is aborted after the first chunk. This index
# publishes every block of the table, computed or not. Then the same prompt comes again.

# %%
from minipaged import EngineConfig
from minipaged.clock import VirtualClock
from minipaged.engine import Engine
from minipaged.exec.sim_exec import SimExecutor


class TooEarly(HashIndex):
    def publish(self, token_ids, block_ids, first, last, key):
        last = min(len(block_ids), len(token_ids) // self.block_size)
        return super().publish(token_ids, block_ids, first, last, key)


def after_an_abort(components, observers=()):
    """What the second of two equal prompts gets, if the first is aborted half computed."""
    config = EngineConfig.of(max_model_len=20, max_num_batched_tokens=6, **memory)
    ledger = SimExecutor(config.cache)
    engine = Engine(config, ledger, components=components, clock=VirtualClock())
    engine.observers += observers
    params = SamplingParams(max_tokens=3, ignore_eos=True)
    engine.add_request("first", range(12), params)
    engine.step()
    engine.abort("first")
    engine.add_request("second", range(12), params)
    tokens = []
    while engine.has_unfinished_requests():
        tokens += [token for output in engine.step() for token in output.new_token_ids]
    return tokens


early = replace(yours, prefix_cache=TooEarly)
print("no cache ", after_an_abort(Components()))
print("HashIndex", after_an_abort(replace(yours, prefix_cache=HashIndex)))
print("TooEarly ", after_an_abort(early))
try:
    after_an_abort(early, [Checked()])
except Exception as error:
    print(f"{type(error).__name__}: {str(error)[:80]}")

# %% [markdown]
# The second block was published with two of its four slots written. Nothing crashed; the second
# visitor got other tokens. `manager.check()` finds it in the step in which it happens.
#
# ## An open question
#
# A service runs four engines behind one address, each with a prefix cache of its own. A *router*
# decides which engine gets a request. What does a router that picks an engine at random do to the
# hits, and how would you choose instead? What could go wrong with your choice? A few sentences will
# do.
#
# There are no points for this one. Write your answer into the next cell; `minipaged solution 09`
# then shows the model answer.

# %% [markdown] open=true
# ### BEGIN SOLUTION
# **At random.** Each engine has to compute a prefix once before it can find it. A prefix that all
# share is computed four times, which does little harm. A conversation is worse: its next turn
# begins with all that was said so far, and three times out of four it meets an engine that has
# never seen it. And since each engine keeps its own copy of the popular prefixes, four caches
# together hold hardly more different ones than a single cache.
#
# **Better.** Let the prefix decide. The plain way is to hash the first block or two (or a visitor's
# id) and to choose the engine by that; nobody has to be asked. More exact is a table in the router
# of what was sent to each engine, or of what each one says that it has published; the engine with
# the longest match gets the request.
#
# **What goes wrong.** A popular prefix sends everybody to one engine while three are idle. So two
# things have to be weighed, the tokens that a hit saves and the tokens that already wait there, and
# a hit is given up if the queue costs more than it saves. The table is never quite right either:
# blocks are handed out again without the router's knowledge, and an engine that was restarted knows
# nothing. A wrong guess may cost time and nothing else. And salts count here too: what the router
# knows of one tenant's prefixes must not be seen in how it treats another.
# ### END SOLUTION
