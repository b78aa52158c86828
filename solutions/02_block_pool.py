# %% [markdown]
# # Exercises 02 · The block pool and its free queue
#
# Two classes and seven questions. Lesson 02 (`lessons/02_block_pool.ipynb`) leads up to them. At
# the end of this notebook both classes run the engine.

# %% [markdown]
# ## 02.1 The free queue
#
# Write `FreeQueue`: the ids of free blocks in the order in which they will be handed out. At first
# it holds all ids from 0 to `num_blocks - 1`, in ascending order. The docstrings say what each
# method does.
#
# Every method but `__iter__` takes the same few steps, however long the queue is. The last case of
# the check counts them on 4,096 ids: a queue that searches or copies its elements is right in all
# other cases and fails in this one. Of three calls the cheapest counts, so a dict that grows now
# and then does no harm. What `del ids[k]` or `pop(0)` moves is not seen, and is slow all the same.
#
# `_link` and `_unlink` are the two moves that you made by hand in the lesson. With them each of the
# other methods is a line or three. Nobody calls them from outside, so if you build the queue in
# another way, delete them.
#
# Only the next cell is graded. If it uses an import or a helper, write that into it as well.

# %% exercise="02.1"
class FreeQueue:
    """Ids of free blocks, the next one to be handed out first."""

    def __init__(self, num_blocks):
        """All ids 0 … num_blocks - 1 are queued, in this order."""
        ### BEGIN SOLUTION
        self.sentinel = num_blocks
        self.next_of = [*range(1, num_blocks + 1), 0]
        self.prev_of = [num_blocks, *range(num_blocks)]
        self.size = num_blocks
        ### END SOLUTION

    def _link(self, block_id, before):
        """Put an id that is not queued right behind `before`."""
        ### BEGIN SOLUTION
        if block_id in self:
            raise ValueError(f"block {block_id} is queued already")
        behind = self.next_of[before]
        self.prev_of[block_id], self.next_of[block_id] = before, behind
        self.next_of[before] = self.prev_of[behind] = block_id
        self.size += 1
        ### END SOLUTION

    def _unlink(self, block_id):
        """Take out an id that is queued."""
        ### BEGIN SOLUTION
        before, behind = self.prev_of[block_id], self.next_of[block_id]
        self.next_of[before], self.prev_of[behind] = behind, before
        self.next_of[block_id] = self.prev_of[block_id] = None
        self.size -= 1
        ### END SOLUTION

    def pop_head(self):
        """Take out the first id and return it. IndexError if there is none."""
        ### BEGIN SOLUTION
        if self.size == 0:
            raise IndexError("the free queue is empty")
        block_id = self.next_of[self.sentinel]
        self._unlink(block_id)
        return block_id
        ### END SOLUTION

    def append(self, block_id):
        """Queue an id last. ValueError if it is queued already."""
        ### BEGIN SOLUTION
        self._link(block_id, self.prev_of[self.sentinel])
        ### END SOLUTION

    def prepend(self, block_id):
        """Queue an id first. ValueError if it is queued already."""
        ### BEGIN SOLUTION
        self._link(block_id, self.sentinel)
        ### END SOLUTION

    def remove(self, block_id):
        """Take out this id, wherever it stands. ValueError if it is not queued."""
        ### BEGIN SOLUTION
        if block_id not in self:
            raise ValueError(f"block {block_id} is not queued")
        self._unlink(block_id)
        ### END SOLUTION

    def __contains__(self, block_id):
        """Whether the id is queued; False for an id that does not exist."""
        ### BEGIN SOLUTION
        return 0 <= block_id < self.sentinel and self.next_of[block_id] is not None
        ### END SOLUTION

    def __len__(self):
        """How many ids are queued."""
        ### BEGIN SOLUTION
        return self.size
        ### END SOLUTION

    def __iter__(self):
        """The ids from first to last. Only checks and pictures ask; it may visit them all."""
        ### BEGIN SOLUTION
        block_id = self.next_of[self.sentinel]
        while block_id != self.sentinel:
            yield block_id
            block_id = self.next_of[block_id]
        ### END SOLUTION


# %% check="02.1"
from minipaged.course.check import check

check("02.1", FreeQueue)

# %% [markdown]
# ## 02.2 The block pool
#
# Write `BlockPool`: which blocks are free, and how many tables hold each of the others. A block is
# on the free queue exactly when its refcount is 0. Three rules run through all methods:
#
# - **All or nothing.** A call that raises has changed neither a count nor the order of the queue.
# - **A list is freed from its end to its beginning.** Each block that nobody holds any more goes to
#   the front of the queue.
# - **An id that no block has** is refused with a ValueError, by `share` and by `free`; -1 is one.
#
# `block_hash` is given. Hashes come in lesson 09: a block that has one will go to the *end* of the
# queue, so that blocks without one are reused first. Until then no block has a hash.
#
# The check makes your pool with `PlainQueue` from `minipaged.course.fixtures`: a free queue on a
# Python list, right and slow. So a mistake in 02.1 cannot fail this exercise, and you need not have
# solved it. In your code the queue is whatever `make_queue(num_blocks)` returns.


# %% exercise="02.2"
class BlockPool:
    """Reference counts over a fixed number of blocks.

    Has three attributes beside its methods: num_blocks, num_free (blocks that nobody holds) and
    free_queue.
    """

    def __init__(self, num_blocks, make_queue):
        """All blocks are free. make_queue(num_blocks) makes the free queue."""
        ### BEGIN SOLUTION
        self.num_blocks = num_blocks
        self.free_queue = make_queue(num_blocks)
        self.counts = [0] * num_blocks
        ### END SOLUTION

    @property
    def num_free(self):
        """How many blocks nobody holds."""
        ### BEGIN SOLUTION
        return len(self.free_queue)
        ### END SOLUTION

    def refcount(self, block_id):
        """How many tables hold the block."""
        ### BEGIN SOLUTION
        return self.counts[block_id]
        ### END SOLUTION

    def block_hash(self, block_id: int) -> bytes | None:
        """The hash that the contents are known by: none before lesson 09."""
        return None

    def allocate(self, count):
        """Hand out `count` blocks from the head of the queue, each with refcount 1, as a list.

        MemoryError if fewer are free.
        """
        ### BEGIN SOLUTION
        if count > self.num_free:
            raise MemoryError(f"{count} blocks asked for, {self.num_free} are free")
        block_ids = [self.free_queue.pop_head() for _ in range(count)]
        for block_id in block_ids:
            self.counts[block_id] = 1
        return block_ids
        ### END SOLUTION

    def share(self, block_ids):
        """One more holder for each block; one that was free stops being free.

        ValueError if an id does not exist.
        """
        ### BEGIN SOLUTION
        if not all(0 <= block_id < self.num_blocks for block_id in block_ids):
            raise ValueError(f"{block_ids}: ids end at {self.num_blocks - 1}")
        for block_id in block_ids:
            if self.counts[block_id] == 0:
                self.free_queue.remove(block_id)
            self.counts[block_id] += 1
        ### END SOLUTION

    def free(self, block_ids):
        """One holder fewer for each block; those with none left go to the front of the queue.

        The list is worked off from its end. ValueError if an id does not exist, or if a block
        would be freed more often than it is held.
        """
        ### BEGIN SOLUTION
        drops = {}
        for block_id in block_ids:
            drops[block_id] = drops.get(block_id, 0) + 1
        for block_id, count in drops.items():
            if not 0 <= block_id < self.num_blocks or count > self.counts[block_id]:
                raise ValueError(f"double free of block {block_id}")
        for block_id in reversed(block_ids):
            self.counts[block_id] -= 1
            if self.counts[block_id] == 0:
                self.free_queue.prepend(block_id)
        ### END SOLUTION


# %% check="02.2"
from minipaged.course.check import check

check("02.2", BlockPool)

# %% [markdown]
# ## 02.3 Questions
#
# Answer on paper first; every question takes a minute. Then fill in the dict.
#
# - **a.** A pool of 8 blocks. Table A is `[0, 1]`, B is `[2]`, C is `[3, 4, 5]`; the queue is
#   `6 7`. B finishes. Which ids does `allocate(2)` return now? A list.
# - **b.** A Python list holds 8,192 ids. How many elements does `pop(0)` move?
# - **c.** The same list. `remove(x)`, with x anywhere in it: how many elements are compared or
#   moved, both together, on average?
# - **d.** Block 5 stands in the tables of A, B and C. A is forked (a table with the same blocks is
#   made). B finishes, then C. What is the refcount of block 5?
# - **e.** A pool of 12 blocks. A's table has 5 blocks. B's table has 5 blocks, and 3 of them are
#   A's. How many blocks are free?
# - **f.** A block is freed that nobody holds. What must the pool do? One of `"ignore"`, `"queue"`
#   (put it on the queue), `"warn"` (and go on), `"raise"`.
# - **g.** Somebody saves half of the links: each id of a free queue knows only the id *behind* it,
#   and the queue knows its head and its tail. For one of the four methods it now has to walk along
#   the queue. Which? One of `"pop_head"`, `"append"`, `"prepend"`, `"remove"`.


# %% exercise="02.3"
def answers():
    """Your answers by letter: a list for a, numbers for b to e, words for f and g."""
    ### BEGIN SOLUTION
    return {"a": [2, 6], "b": 8191, "c": 8192, "d": 2, "e": 5, "f": "raise", "g": "remove"}
    ### END SOLUTION


# %% check="02.3"
from minipaged.course.check import check

check("02.3", answers)

# %% [markdown]
# ## Run it
#
# Run these cells once the checks have passed. The engine takes its parts from `Components`; here
# two of them are yours. First over the ledger of the lesson, with a pool so small that requests
# lose their blocks and come back. To show whose code it is, the cell counts the calls of your
# methods, in classes derived from yours.

# %%
from collections import Counter
from dataclasses import replace

from minipaged import Components
from minipaged.simulate import simulate

calls = Counter()


class CountedQueue(FreeQueue):
    def pop_head(self):
        calls["pop_head"] += 1
        return super().pop_head()

    def prepend(self, block_id):
        calls["prepend"] += 1
        super().prepend(block_id)


class CountedPool(BlockPool):
    def allocate(self, count):
        calls["allocate"] += 1
        return super().allocate(count)

    def free(self, block_ids):
        calls["free"] += 1
        super().free(block_ids)


def tokens_of(trace):
    """What each request got: its id and its tokens."""
    tokens = {}
    for record in trace.steps:
        for work in record.work:
            tokens.setdefault(work.request_id, []).extend(work.sampled)
    return tokens


work = [(8, 12), (5, 20), (11, 7), (3, 16), (9, 9), (6, 14)]
yours = replace(Components(), free_queue=CountedQueue, block_pool=CountedPool)
trace = simulate(work, components=yours, block_size=4, num_blocks=12)
reference = simulate(work, block_size=4, num_blocks=12)
events = Counter(event.kind for record in trace.steps for event in record.events)
print(f"{len(trace.steps)} steps, {events['preempted']} preemptions")
print("calls of your methods:", dict(calls))
print("same tokens as the reference:", tokens_of(trace) == tokens_of(reference))
print(
    "same blocks at every step:   ",
    [r.tables for r in trace.steps] == [r.tables for r in reference.steps],
)

# %% [markdown]
# As many ids come out of the queue as go back into it, preemptions or not. The last line is
# stronger than it looks: your queue handed out the very same ids in the same order, so a fault can
# be compared step by step.
#
# Now the tutor writes, and every key and value that it reads lies in a block that your pool handed
# out. `engine.manager.check()` verifies after each step that free and held blocks add up, that each
# refcount equals the number of tables, and that the queue holds exactly the blocks with refcount 0.

# %%
from minipaged import LLM

questions = ["What is a slot?", "What is a block table?", "What is EOS?"]
yours = replace(Components(), free_queue=FreeQueue, block_pool=BlockPool)
llm = LLM("tutor", components=yours, block_size=16, num_blocks=24)


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
answers_here = [answer.text for answer in llm.generate(questions)]
reference_texts = [answer.text for answer in LLM("tutor").generate(questions)]
for question, text in zip(questions, answers_here, strict=True):
    print(question, "-", text[:60])
print(
    f"{checked.steps} steps checked, in the pool of class {type(llm.engine.manager.pool).__name__}"
)
print("same texts as the reference:", answers_here == reference_texts)

# %% [markdown]
# ### Plant a fault
#
# Does it all really hang on your code? Break it. This pool is yours, except that it forgets the
# last block of every list it is given to free. Guess what will happen before you run it.


# %%
class LeakyPool(BlockPool):
    def free(self, block_ids):
        super().free(block_ids[:-1])


leaky = replace(Components(), free_queue=FreeQueue, block_pool=LeakyPool)
llm = LLM("tutor", components=leaky, block_size=16, num_blocks=24)
llm.engine.observers.append(Checked())
try:
    llm.generate(questions)
except Exception as error:
    print(f"{type(error).__name__}: {str(error)[:150]}")

# %% [markdown]
# ## An open question
#
# Two threads call `allocate(1)` on your pool at the same moment. What can go wrong, line by line?
# And why do engines get away without a lock in their pool? A few sentences will do.
#
# There are no points for this one. Write your answer into the next cell; `minipaged solution 02`
# then shows the model answer.

# %% [markdown] open=true
# ### BEGIN SOLUTION
# **What can go wrong.** `allocate` looks first and takes then, and a thread can be interrupted
# between any two steps of that. Say one block is free. Both threads find `1 <= 1`, the first takes
# the block, and the second pops an empty queue: an IndexError where the contract promises a
# MemoryError, and in a longer list the blocks that it had popped before are lost. Inside the queue
# it is worse. If both read the head before either has unlinked it, both get the *same* id, and the
# block has refcount 1 and two owners: the double free's damage without any double free. If they are
# interrupted while links are being set, the ring can be left broken or shortened for good.
#
# **Why no lock.** All that touches the pool is done by one thread: the scheduler, between two runs
# of the model. Requests that arrive, tokens that come back and aborts from other threads wait in
# inboxes and are looked at at the start of a step. The GPU works at the same time, but it only
# reads ids that were decided before it was started. So the pool has one owner and there is nothing
# to lock; a lock that is never contended would cost little, but it would promise that calls may
# come from anywhere, and the sequence "is enough free? then allocate" in the scheduler would still
# not be safe. Where several processes share one memory, each usually gets a part of the pool of
# its own.
# ### END SOLUTION
