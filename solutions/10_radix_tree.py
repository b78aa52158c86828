# %% [markdown]
# # Exercises 10 · The radix tree
#
# A walk, an index, a rule for the queue, and six questions. Lesson 10
# (`lessons/10_radix_tree.ipynb`) leads up to them. At the end of this notebook your tree finds what
# the engine has computed before.

# %% [markdown]
# The cell below is given: the node of a radix tree. Both of the first two exercises use it, and it
# is there at grading.

# %% given=true
class Node:
    """A run of pages that nothing branches off inside. The root of a tree has none."""

    def __init__(self, pages=(), block_ids=(), parent=None):
        self.pages = list(pages)  # each a tuple with the tokens of one block
        self.block_ids = list(block_ids)  # the block of each page
        self.parent = parent  # None for the root
        self.children = {}  # first page of a child -> the child


# %% [markdown]
# ## 10.1 A match that splits
#
# Write `match_with_split(root, pages)`. It walks from the root along `pages` (a list of tuples) and
# returns two things, `node, block_ids`:
#
# - `block_ids`: a list, the blocks of all known pages from the start on.
# - `node`: the node in which the last of these pages is the last one, or the root if there is none.
#
# If the match ends inside a node, there is no such node yet. Then split: a new upper node takes the
# pages up to there, and **the node that was there keeps the rest**, below the new one. Whoever
# holds the old node (a request that is running, say) then still stands at the end of the same
# tokens. The match may end inside a node for two reasons: the next page is another one, or there is
# no next page.
#
# An example, with pages of one token. The tree is one node, and `[(1,), (2,), (3,), (7,)]` is
# looked for:
#
#     before:  1 | 2 | 3 | 4 | 5 | 6 -> 10 11 12 13 14 15
#
#     after:   1 | 2 | 3 -> 10 11 12
#                4 | 5 | 6 -> 13 14 15
#
# The blocks returned are `[10, 11, 12]`, the node is the upper one. `split` is there to help you:
# only `match_with_split` is called by the check.


# %% exercise="10.1"
def split(node, index):
    """Put the first `index` pages into a new node above this one; return the new node."""
    ### BEGIN SOLUTION
    upper = Node(node.pages[:index], node.block_ids[:index], node.parent)
    node.parent.children[node.pages[0]] = upper
    node.pages, node.block_ids = node.pages[index:], node.block_ids[index:]
    node.parent = upper
    upper.children[node.pages[0]] = node
    return upper
    ### END SOLUTION


def match_with_split(root, pages):
    """Where the known part of `pages` ends: (node, block ids from the root on)."""
    ### BEGIN SOLUTION
    node, block_ids = root, []
    while len(block_ids) < len(pages):
        child = node.children.get(pages[len(block_ids)])
        if child is None:
            break
        same = 0
        for known, page in zip(child.pages, pages[len(block_ids) :], strict=False):
            if known != page:
                break
            same += 1
        block_ids += child.block_ids[:same]
        if same < len(child.pages):
            return split(child, same), block_ids
        node = child
    return node, block_ids
    ### END SOLUTION


# %% check="10.1"
from minipaged.course.check import check

check("10.1", match_with_split)

# %% [markdown]
# ## 10.2 The index
#
# Write `RadixIndex`, a prefix cache for the engine: one tree for each key (a pair of salt and
# adapter), over the pool's blocks. The rules are those of lesson 09:
#
# - `match` finds whole pages only, and leaves at least one token to compute. It changes nothing.
# - `publish` gets the tokens and the table of a whole sequence. Entries `first` to `last - 1` have
#   just been computed, those before `first` were known already. Walk from the root along the first
#   `last` pages. Pages that the tree lacks come in with the table's own blocks. Where the tree has
#   *another* block for the same tokens, it keeps its own, and the table is to change: return a list
#   with a pair `(entry, block)` for each such entry, in the order of the table.
# - `forget`: the pool has handed the block out again, so its old contents are lost. What stands
#   behind it cannot be reached any more and goes with it: the later pages of its node, and all
#   nodes below. A block that is not in the tree is ignored.
# - **The pool is told.** `pool.set_hash(block_id, b"tree")` for every block that comes into the
#   tree, and only for those; `pool.set_hash(block_id, None)` for every one that is dropped, the
#   forgotten one included. (Any bytes will do: nobody looks them up.) Beside that you only ask
#   `pool.refcount(block_id)`. The index never allocates, shares or frees.
#
# The methods without a gap are given. `walk` is your walk of 10.1 without the split. It returns
# three things: the node in which it ended (the root, if nothing is known), how many of that node's
# pages it used, and the blocks on the way. `split` is yours of 10.1, with one more thing to do:
# `self.nodes` says for each block in which node it stands, and some have moved. The check calls
# neither of the two.
#
# Starting at the root each time is right and slower than need be: the engine's own tree goes on
# from the block of entry `first - 1`.


# %% exercise="10.2"
class RadixIndex:
    """Which block holds which prefix: a tree of pages for each key."""

    def __init__(self, block_size, pool):
        self.block_size, self.pool = block_size, pool
        self.roots = {}  # key -> the root of its tree
        self.nodes = {}  # known block -> the node that it stands in

    def pages_of(self, token_ids, count):
        """The first `count` pages of a sequence."""
        size = self.block_size
        return [tuple(token_ids[i * size : (i + 1) * size]) for i in range(count)]

    def known_blocks(self):
        """Every block of all trees, in ascending order."""
        return sorted(self.nodes)

    def walk(self, root, pages):
        """Where the known part of `pages` ends: (node, how many of its pages, block ids)."""
        ### BEGIN SOLUTION
        node, used, block_ids = root, 0, []
        while used == len(node.pages) and len(block_ids) < len(pages):
            child = node.children.get(pages[len(block_ids)])
            if child is None:
                break
            node, used = child, 0
            for known, page in zip(child.pages, pages[len(block_ids) :], strict=False):
                if known != page:
                    break
                used += 1
            block_ids += child.block_ids[:used]
        return node, used, block_ids
        ### END SOLUTION

    def match(self, token_ids, key):
        """Blocks of the longest known prefix, head first; at least one token is left."""
        ### BEGIN SOLUTION
        pages = self.pages_of(token_ids, (len(token_ids) - 1) // self.block_size)
        root = self.roots.get(key, Node())
        return self.walk(root, pages)[2]
        ### END SOLUTION

    def split(self, node, index):
        """Put the first `index` pages into a new node above this one; return the new node."""
        ### BEGIN SOLUTION
        upper = Node(node.pages[:index], node.block_ids[:index], node.parent)
        node.parent.children[node.pages[0]] = upper
        node.pages, node.block_ids = node.pages[index:], node.block_ids[index:]
        node.parent = upper
        upper.children[node.pages[0]] = node
        for block_id in upper.block_ids:
            self.nodes[block_id] = upper
        return upper
        ### END SOLUTION

    def publish(self, token_ids, block_ids, first, last, key):
        """Make entries first … last - 1 known; (entry, block) where the tree has another block."""
        ### BEGIN SOLUTION
        root = self.roots.setdefault(key, Node())
        pages = self.pages_of(token_ids, last)
        node, used, found = self.walk(root, pages)
        rest, own = pages[len(found) :], block_ids[len(found) : last]
        if rest:
            if used < len(node.pages):
                node = self.split(node, used)
            if node is root or node.children:
                child = Node((), (), node)
                node.children[rest[0]] = child
                node = child
            node.pages += rest  # a leaf grows at its end
            node.block_ids += own
            for block_id in own:
                self.nodes[block_id] = node
                self.pool.set_hash(block_id, b"tree")
        return [(entry, block) for entry, block in enumerate(found) if block != block_ids[entry]]
        ### END SOLUTION

    def forget(self, block_id):
        """The block's contents are lost: drop it and all that stands behind it."""
        ### BEGIN SOLUTION
        node = self.nodes.get(block_id)
        if node is None:
            return
        index = node.block_ids.index(block_id)
        if index == 0:
            del node.parent.children[node.pages[0]]
        dropped, below = node.block_ids[index:], list(node.children.values())
        while below:
            child = below.pop()
            dropped += child.block_ids
            below += child.children.values()
        node.pages, node.block_ids = node.pages[:index], node.block_ids[:index]
        node.children = {}
        for gone in dropped:
            del self.nodes[gone]
            self.pool.set_hash(gone, None)
        ### END SOLUTION

    def protected_tokens(self):
        """Tokens in known blocks that some table holds."""
        ### BEGIN SOLUTION
        held = [block_id for block_id in self.nodes if self.pool.refcount(block_id) > 0]
        return len(held) * self.block_size
        ### END SOLUTION

    def evictable_tokens(self):
        """Tokens in known blocks that no table holds."""
        ### BEGIN SOLUTION
        return len(self.nodes) * self.block_size - self.protected_tokens()
        ### END SOLUTION


# %% check="10.2"
from minipaged.course.check import check

check("10.2", RadixIndex)

# %% [markdown]
# ## 10.3 Who comes next
#
# Write `pick_next(waiting, match_len, passed_over, patience)`: which waiting request is admitted
# next.
#
# - `waiting`: names in order of arrival, at least one.
# - `match_len`: for each name, how many tokens of its prompt the cache has now. There may be more
#   names in it than are waiting.
# - `passed_over`: how often somebody else was admitted before the first in line.
# - `patience`: how often that may happen. Once it has happened so often, the first in line is next.
#
# Otherwise it is the one with the longest match, and of several that match as much, the one that
# came first. Return the name.


# %% exercise="10.3"
def pick_next(waiting, match_len, passed_over, patience):
    """The name of the request that is admitted next."""
    ### BEGIN SOLUTION
    if passed_over >= patience:
        return waiting[0]
    return max(waiting, key=lambda name: match_len[name])
    ### END SOLUTION


# %% check="10.3"
from minipaged.course.check import check

check("10.3", pick_next)

# %% [markdown]
# ## 10.4 Questions
#
# Answer on paper first. Then fill in the dict.
#
# - **a.** Pages of 16. The tree knows all 48 tokens of a prompt, and the very same prompt comes
#   again. How many tokens does it find?
# - **b.** Pages of 1. The sequences 1 2 3 4 5 6 7 8, then 1 2 3 9, then 1 2 3 4 5 0 are published.
#   How many nodes has the tree, the root not counted?
# - **c.** Pages of 1. A request whose eight tokens 1 2 3 4 5 6 7 8 are all computed is running.
#   Another, whose tokens 1 2 3 9 9 9 9 were all computed as well, has finished. How many tokens are
#   protected, how many evictable? A list of two numbers.
# - **d.** Table A is `[0, 1, 2]`, table B is `[0, 1, 3, 4]`; all five blocks are known to the tree,
#   and the free queue is empty. A finishes, then B. What is the queue now? A list, the next block
#   to be handed out first.
# - **e.** Two requests with the same prompt of exactly 5 full pages compute it in the same step,
#   and nothing of it was known. How many blocks do the two hold for it afterwards with the hash
#   index, how many with the tree? A list of two numbers.
# - **f.** Order `"lpm"`, patience 8. The first in line matches nothing, and many others wait that
#   all match. How many of them can be admitted before it?


# %% exercise="10.4"
def answers():
    """Your answers, by letter: numbers for a, b and f, lists for c, d and e."""
    ### BEGIN SOLUTION
    return {"a": 32, "b": 5, "c": [8, 4], "d": [2, 4, 3, 1, 0], "e": [10, 5], "f": 8}
    ### END SOLUTION


# %% check="10.4"
from minipaged.course.check import check

check("10.4", answers)

# %% [markdown]
# ## Run it: the engine on your tree
#
# Run these cells once the checks have passed. First the conversation of the lesson, over the
# ledger: without a cache, with the hash index, and with yours, in a pool that holds everything and
# in one so small that blocks are evicted all the time. After each step the engine checks that pool
# and index agree on what is known.

# %%
import random
from dataclasses import replace

from minipaged import Components, SamplingParams
from minipaged.clock import VirtualClock
from minipaged.config import EngineConfig
from minipaged.engine import Engine
from minipaged.exec.sim_exec import SimExecutor


def talk(index, num_blocks, check=True, visitors=4, turns=6):
    """Each turn's prompt is all that was said, with twelve new tokens behind it."""
    draw = random.Random(10)
    is_named = isinstance(index, str)
    parts = Components() if is_named else replace(Components(), prefix_cache=index)
    kind = index if is_named else "off"
    config = EngineConfig.of(num_blocks=num_blocks, max_model_len=512, enable_prefix_caching=kind)
    engine = Engine(config, SimExecutor(config.cache), components=parts, clock=VirtualClock())
    intro = [draw.randrange(50_000) for _ in range(48)]
    said = [list(intro) for _ in range(visitors)]
    for turn in range(turns):
        for visitor, words in enumerate(said):
            words += [draw.randrange(50_000) for _ in range(12)]
            engine.add_request(f"{visitor} {turn}", words, SamplingParams(max_tokens=20))
        while engine.has_unfinished_requests():
            for output in engine.step():
                said[int(output.request_id.split()[0])] += output.new_token_ids
            if check:
                engine.check()
    return said, engine.metrics


words, _ = talk("off", 300)
for num_blocks in (300, 40):
    for name, index in (("off", "off"), ("hash", "hash"), ("yours", RadixIndex)):
        said, metrics = talk(index, num_blocks)
        print(
            f"{num_blocks:3} blocks, {name:5} found {metrics.prefix_cache_hits_total:5}, "
            f"evicted {metrics.prefix_cache_evictions_total:4}, same words: {said == words}"
        )

# %% [markdown]
# Your tree finds what the hash index finds. In the small pool both find less, and less is evicted
# from the tree, because it keeps no duplicates. The words are the same in every line. A cache may
# change what is computed, and never what comes out.
#
# Now the tutor writes. All prompts have the same introduction, so the second question finds what
# the first has left.

# %%
from minipaged import LLM

questions = ["What is a slot?", "What is a block table?", "What is EOS?"]
llm = LLM("tutor", components=replace(Components(), prefix_cache=RadixIndex), num_blocks=96)
texts = [llm.generate([question])[0].text for question in questions]
llm.engine.check()
plain = LLM("tutor", num_blocks=96)
reference_texts = [plain.generate([question])[0].text for question in questions]
metrics = llm.engine.metrics
for question, text in zip(questions, texts, strict=True):
    print(question, "-", text[:60])
print(
    f"{metrics.prefix_cache_hits_total} of {metrics.prefix_cache_queries_total} prompt tokens found"
    f" by an index of class {type(llm.engine.manager.prefix.cache).__name__}"
)
print("same texts as the reference:", texts == reference_texts)

# %% [markdown]
# ### Your order
#
# `pick_next` decides about names and numbers; this class asks it in the name of the engine. It
# counts how often the first in line was passed over: whenever the one that was chosen is not in
# line any more. Then the two workloads of the lesson, on your tree and with your rule: four groups
# in a pool of 12 blocks, and Z beside a stream of one group.

# %%
from minipaged.simulate import simulate
from minipaged.workload import Arrival


class Order:
    """An order of admission made of pick_next."""

    def __init__(self, patience):
        self.patience, self.passed_over, self.first, self.chosen = patience, 0, None, None

    def __call__(self, waiting, manager):
        line = {request.request_id: request for request in waiting}
        first = waiting[0].request_id
        if first != self.first:
            self.first, self.passed_over = first, 0
        elif self.chosen not in line:
            self.passed_over += 1
        lengths = {
            name: manager.block_size * len(manager.prefix.match(request))
            for name, request in line.items()
        }
        self.chosen = pick_next(list(line), lengths, self.passed_over, self.patience)
        return line[self.chosen]


def prompts(seed, groups):
    """An endless row of prompts of 76 tokens, of the groups in turn."""
    draw = random.Random(seed)
    shared = [[draw.randrange(50_000) for _ in range(64)] for _ in range(groups)]
    while True:
        for beginning in shared:
            yield beginning + [draw.randrange(50_000) for _ in range(12)]


def request(name, prompt, step=0):
    return Arrival(name, prompt, SamplingParams(max_tokens=8), step)


row, stream_row, guest = prompts(1, 4), prompts(2, 1), prompts(3, 1)
interleaved = [request(f"{'ABCD'[i % 4]}{i // 4}", next(row)) for i in range(24)]
stream = [request(f"A{i}", next(stream_row), 4 * i) for i in range(30)]
stream.append(request("Z", next(guest), 13))


def first_steps(trace):
    """For each request: tokens found, and the step in which it was admitted."""
    seen = {}
    for record in trace.steps:
        for work in record.work:
            seen.setdefault(work.request_id, (work.start_position, record.step))
    return seen


for patience in (0, 8, 1000):
    parts = replace(Components(), prefix_cache=RadixIndex, order=Order(patience))
    groups = first_steps(simulate(interleaved, components=parts, num_blocks=12, max_num_seqs=2))
    parts = replace(parts, order=Order(patience))
    alone = first_steps(simulate(stream, components=parts, num_blocks=24, max_num_seqs=2))
    found = sum(hits for hits, _ in groups.values())
    print(f"patience {patience:4}: the groups find {found:5}, Z waits {alone['Z'][1] - 13:4} steps")

# %% [markdown]
# ### Plant a fault
#
# The first index loses the lower half of every node that it splits. The second keeps a block in the
# tree that the pool has handed out again. One of them gives wrong words, the other does not. Which?
# Guess before you run the cell. (If your index has no method `split`, leave the first one out.)


# %%
from minipaged.cache.manager import InvariantError


class LosesHalf(RadixIndex):
    """Nothing leads to the lower half any more."""

    def split(self, node, index):
        upper = super().split(node, index)
        upper.children = {}
        return upper


class NeverForgets(RadixIndex):
    """What was known once is known for ever."""

    def forget(self, block_id):
        pass


for fault, num_blocks in ((LosesHalf, 300), (NeverForgets, 40)):
    said, metrics = talk(fault, num_blocks, check=False)
    print(f"{fault.__name__}: found {metrics.prefix_cache_hits_total}, same words: {said == words}")
    try:
        talk(fault, num_blocks)
        print("    every check passed")
    except InvariantError as error:
        print("   ", str(error).partition("; ")[0])

# %% [markdown]
# What is lost is computed again: hits fall, and every word is right. Such a fault is easy to miss,
# because only the rate of hits gives it away. A block that is found although it holds other
# tokens is the reverse: more hits than there should be, and wrong words. Here the check notices it
# at once, because pool and index no longer agree.
#
# ## An open question
#
# SGLang counts locks at its nodes and keeps a heap of leaves; our tree has the pool's refcounts and
# its free queue. Why is that enough here? And name a wish about what is evicted that the queue
# could not fulfil. A few sentences will do.
#
# There are no points for this one. Write your answer into the next cell; `minipaged solution 10`
# then shows the model answer.

# %% [markdown] open=true
# ### BEGIN SOLUTION
# **Locks.** A table is a whole path from the root, and the pool counts for each block how many
# tables hold it. So "some request needs this block" is known at the block itself, before and after
# any split, and whoever holds a block holds all above it. In SGLang's pool there is no count per
# slot, and the tree owns the slots of what it knows: then the tree has to know what is in use,
# which means a count at each node, taken on the way up to the root and copied when a node is split.
#
# **The heap.** Tables are freed from their ends, so a block is queued behind everything below it,
# and the head of the queue is always the end of a leaf: of the one that nobody has used for
# longest. The queue *is* the order of eviction, kept up at no cost, because a block enters it when
# its last holder leaves and leaves it when a hit takes it. SGLang's tree owns its slots and evicts
# only when memory is short, so it must look for leaves then.
#
# **What the queue cannot do.** It knows when a block was last held, and nothing else. Evict what is
# used least *often*; keep the introduction of a customer who pays for it; evict long branches
# before short ones; evict a whole node at once so that its memory lies together. Each needs a
# choice among the leaves by some number of theirs, and that is a heap (SGLang has several such
# policies). And if part of what is evicted moves to a slower memory instead of being lost, the tree
# must remember it, while a block that has left the queue is gone.
# ### END SOLUTION
