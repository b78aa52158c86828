# %% [markdown]
# # 06 · Continuous batching
#
# **The question.** Many visitors ask at the same time, and their answers end at different moments.
# Who computes in which step, and what becomes of a place whose answer has ended?
#
# You will count idle places by hand, watch two engines serve the same requests, and write the part
# that decides: the *scheduler*. Allow 60 minutes with the exercises. You need the pool of lesson 02
# and the table of lesson 03.

# %% [markdown]
# ## A number first
#
# A step of the model gives each request in it one token. All requests of a step together are its
# *batch*. A step reads the model's *weights*, the numbers that it has learnt, from memory, and that
# is what takes most of its time. It reads them once, however many requests are in it. So a step of
# four costs hardly more than a step of one, and everybody wants batches that are full.
#
# The simplest way to fill one: take four requests, start them together, and take the next four when
# all have ended. This is *static batching*. Say the four have 50, 500, 100 and 150 tokens to write.
# How many steps does the batch last? How many *slot-steps* does it hold, and how many of them are
# idle? (One place for one step. A slot of a batch is such a place; it has nothing to do with a slot
# of the memory.)
#
# It lasts as long as its longest: 500 steps. Four places are 2,000 slot-steps. The four need
# 50 + 500 + 100 + 150 = 800 of them, so 1,200 idle.
#
# > **A claim, recomputed.** *This batch is idle for more than 60 %.*
# > 1,200 of 2,000 is 60 per cent exactly, and not more.
#
# Now a batch of three: A, B and C have 200, 5 and 50 outputs. For how many of the 200 steps does B's
# place idle?
#
# It computes in 5 and idles in 195. Its user had the whole answer after 5 steps; the *place* waits
# for A. And a fourth request, D, that stands in line for a place waits too.
#
# ## Watch it
#
# Eight requests on four places. The pair `(1, 9)` is a prompt of 1 token and 9 outputs. The first
# output comes from the step that computes the prompt, so with a prompt of one token a request of 9
# outputs is in 9 steps. `simulate` runs the real engine over the ledger of lesson 02, and `places`
# draws who sits where: a row for each place, a column for each step, a dot for nobody.

# %%
from minipaged.simulate import simulate

work = [(1, 3), (1, 9), (1, 5), (1, 7), (1, 4), (1, 6), (1, 2), (1, 8)]


def places(trace):
    rows, seat = [""] * trace.max_num_seqs, {}
    for record in trace.steps:
        names = [one.request_id for one in record.work]
        seat = {place: name for place, name in seat.items() if name in names}
        for name in names:
            if name not in seat.values():
                seat[min(set(range(len(rows))) - set(seat))] = name
        rows = [row + seat.get(place, ".") for place, row in enumerate(rows)]
    return "\n".join(rows)


static = simulate(work, scheduler="static", max_num_seqs=4)
continuous = simulate(work, max_num_seqs=4)
for name, trace in (("static", static), ("continuous", continuous)):
    print(f"{name}: {len(trace.steps)} steps")
    print(places(trace), "\n")

# %% [markdown]
# In the second picture E sits down the moment A has ended. Nothing else has changed: the same
# requests, the same places, the same tokens. This is *iteration-level scheduling*: who is in the
# batch is decided anew at every step (every iteration) and not once a batch. It comes from the
# engine Orca (Yu et al., OSDI 2022); most people call it *continuous batching*.
#
# *Why is that possible at all?* Because nothing ties the requests of a batch together. Each step
# reads keys and values through each request's own table and gives each its own token. Whether the
# neighbour in the next step is the same one makes no difference to anybody.
#
# Step through the second run. Look at step 3: A has left, and E's block is the one that A gave
# back.

# %%
from minipaged.viz.widgets import step_through

step_through(continuous, step=3)

# %% [markdown]
# ## Sixteen answers
#
# Sixteen answers of 10 to 120 tokens, drawn by chance, on four places:
#
#     91 24 13 104   45 41 38 27   104 23 96 104   79 21 85 64
#
# How many steps do they take in static batches of four? Sum the longest of each four:
# 104 + 45 + 104 + 85 = 338 steps. And no order whatever can need fewer than the sum of all over
# four: 959 / 4, so 240. What does continuous batching need? Guess, then run the cell.

# %%
import random

random.seed(42)
lengths = [random.randint(10, 120) for _ in range(16)]
print(*lengths)
for scheduler in ("static", "unified"):
    steps = len(simulate([(1, n) for n in lengths], scheduler=scheduler, max_num_seqs=4).steps)
    idle = 4 * steps - sum(lengths)
    print(
        f"{scheduler:8} {steps} steps, {idle} idle, {100 * sum(lengths) / (4 * steps):.2f}% useful"
    )

# %% [markdown]
# 338 against 279: 59 steps saved, 1.21 times as fast. ("unified" is the engine's own scheduler;
# lesson 07 says why it is called so.) Texts on serving speak of four times. Which is it?
#
# ## It depends on the lengths
#
# What does a batch of eight cost in each way? Static, it lasts as long as its longest. Continuous,
# in the long run, every place is always in use, so eight requests take eight times the mean, spread
# over eight places: the *mean*. So the gain is the longest of eight over the mean, for many
# requests. If all are equal, that is 1, and nothing is gained. Think of lengths of 8, and one in
# five of 320: the mean is 70.4, and of eight requests at least one is long in 83 of 100 batches
# (1 - 0.8⁸). What gain do you expect?
#
# The longest is 320 in 83 of 100, else 8: 268 on average. 268 / 70.4 is 3.8.
#
# Five kinds of lengths, 96 requests of each, about as long on average, on eight places: `uniform`,
# where 8 to 120 are equally likely; `two-point`, as above; `exponential`, where long ones are the
# rarer the longer they are; and a *heavy tail*, where most are short and a few are longer by orders
# of magnitude. `mean` and `longest` are tokens, `static` and `continuous` are steps.


# %%
def drawn(kind, count=96):
    draw = random.Random(6)
    one = {
        "equal": lambda: 64,
        "uniform": lambda: draw.randint(8, 120),
        "two-point": lambda: 320 if draw.random() < 0.2 else 8,
        "exponential": lambda: 1 + round(draw.expovariate(1 / 64)),
        "heavy tail": lambda: min(2000, round(16 * draw.paretovariate(1.2))),
    }[kind]
    return [one() for _ in range(count)]


KINDS = ("equal", "uniform", "two-point", "exponential", "heavy tail")


def steps_of(lengths, slots):
    runs = [
        simulate([(1, n) for n in lengths], scheduler=scheduler, max_num_seqs=slots)
        for scheduler in ("static", "unified")
    ]
    return [len(run.steps) for run in runs]


print(
    "              mean  longest   static  continuous   gain   idle in per cent, static and continuous"
)
for kind in KINDS:
    lengths = drawn(kind)
    both = steps_of(lengths, 8)
    idle = [f"{100 - 100 * sum(lengths) / (8 * steps):3.0f}" for steps in both]
    print(
        f"{kind:12} {sum(lengths) / 96:5.1f} {max(lengths):8} {both[0]:8} {both[1]:11}"
        f" {both[0] / both[1]:6.2f}   {idle[0]} and {idle[1]}"
    )

# %% [markdown]
# From 1.00 to 2.98, with one and the same engine. Two things in this table deserve a second look.
#
# *Why 2.98 and not 3.8?* At the end of the run nobody is left to sit down, and the last long
# answers finish alone. In a server that never runs dry this part falls away; in a test of 96
# requests it does not.
#
# *Why does the heavy tail gain so little?* Its longest answer has 2,000 tokens, and it takes 2,000
# steps whatever the others do. Continuous batching needs 2,367: most of the time it waits for that
# one. No scheduler makes a single answer faster.
#
# Move the sliders. For which lengths does the number of places matter most, and why is there less to
# gain with 32 places than with 8?

# %%
from minipaged.viz.plots import bars
from minipaged.viz.widgets import explore


def gain(kind, slots):
    both = steps_of(drawn(kind), slots)
    title = f"{kind}, {slots} places: {both[0] / both[1]:.2f} times as fast"
    return bars(["static", "continuous"], {"steps": both}, title=title, ylabel="steps")


explore(gain, start={"kind": "two-point", "slots": 8}, kind=list(KINDS), slots=[1, 2, 4, 8, 16, 32])

# %% [markdown]
# For the two-point lengths: from 1.00 with one place to 3.00 with 16. A larger batch is likelier to
# hold a long answer for which all others wait. With 32 places 96 requests are no more than three
# batches, and the end of the run weighs more.
#
# ## When it does not pay
#
# Steps are not time. Reading a prompt is work that no batching makes smaller: each of its tokens is
# computed once. Suppose the prompts of a workload take 300 ms to read and its outputs 200 ms. If
# continuous batching made the outputs four times as fast, how many times as fast would the whole
# be?
#
# 500 ms become 300 + 50: 1.43 times. The longer the prompts and the shorter the answers, the
# less there is to gain. No GPU is used here: the engine works out how long each step of a Llama-3-8B
# would take on an H100. That is as long as reading weights, keys and values, or as long as computing
# the step's tokens, whichever is longer, and 2 ms besides. Below, on eight places, are prompts of 1,
# 500 and 2,000 tokens before the two-point answers; then answers of 1 to 9 tokens. (A step may take
# 16,384 tokens, enough for eight such prompts at once.)


# %%
def seconds(work, scheduler):
    trace = simulate(work, scheduler=scheduler, max_num_seqs=8, max_num_batched_tokens=16_384)
    return trace.steps[-1].time


draw = random.Random(9)
answers = {"two-point": drawn("two-point", 48), "1 to 9": [draw.randint(1, 9) for _ in range(48)]}
for prompt, kind in ((1, "two-point"), (500, "two-point"), (2000, "two-point"), (2000, "1 to 9")):
    work = [(prompt, n) for n in answers[kind]]
    times = [seconds(work, scheduler) for scheduler in ("static", "unified")]
    print(
        f"prompts of {prompt:5}, answers {kind:9}: static {times[0]:5.2f} s, continuous {times[1]:.2f} s,"
        f" {times[0] / times[1]:.2f} times as fast"
    )

# %% [markdown]
# "Four times" is a figure for one workload. Ask for its lengths before you believe or repeat it.
#
# ## The states of a request
#
# If requests come and go at every step, each of them is always *somewhere*, and the engine must
# know where. Five states, and the moves between them:
#
# ```
#                 enters                       ends
#     WAITING ──────────────────▶ RUNNING ────────────────▶ FINISHED
#                                 │  ▲  │  ▲
#                blocks taken,    │  │  │  │  blocks copied back
#                computed again   │  │  │  │
#                                 ▼  │  ▼  │
#                          PREEMPTED    SWAPPED
#                                 ▲        │
#                                 └────────┘  the copy is given up
#
#     WAITING, PREEMPTED and SWAPPED may go to FINISHED as well: the user has gone away.
# ```
#
# A *preempted* request has lost its blocks, because another one needed them, and stands first in
# line. Its tokens are not lost, prompt and outputs: only keys and values are, and they are computed
# again when it comes back. *Swapped* is the other way to make room, lesson 08: its blocks are copied
# to the memory of the *host*, the computer that the GPU (the *device*) sits in, and wait there.
#
# *Is PREEMPTED not WAITING again?* In some engines it is. But the two differ: whoever waits has
# nothing yet, and the user of a preempted request has read the beginning of an answer and waits for
# its next word.
#
# Any other move is a bug somewhere, and it is better to hear of it at once. The engine's own
# request refuses:

# %%
from minipaged import SamplingParams
from minipaged.request import Request, RequestStatus

request = Request("chat-17", [5, 6, 7], SamplingParams())
for state in (RequestStatus.RUNNING, RequestStatus.PREEMPTED, RequestStatus.SWAPPED):
    try:
        request.move_to(state)
        print("now", request.status.value)
    except RuntimeError as error:
        print("RuntimeError:", error)

# %% [markdown]
# **Exercise 06.1** (`exercises/06_continuous_batching.ipynb`) is this machine.
#
# ## One step of a scheduler
#
# Before each step the scheduler writes a *plan*: which requests compute which of their tokens. By
# hand once: three places, a *budget* of 32 tokens a step (more at once would make the step too
# long), blocks of 4 slots of which 6 are free. A runs and has just filled its last block. In line
# stand B with a prompt of 10, C with 9, and D with 2. Who is in the plan?
#
# 1. **Those that run go on.** A computes the token that it got last. Its block is full, so it takes
#    a new one: 5 blocks and 31 tokens are left, and two places.
# 2. **Others enter, from the front.** B needs 10 tokens of the budget and 3 blocks: it enters. 2
#    blocks, 21 tokens and one place are left. C needs 9 tokens and 3 blocks. There are only 2.
# 3. **And D?** It needs 1 block, and there is a place. It does not enter. If it did, the next small
#    one would, and the one after, and C could wait for ever for a moment with 3 free blocks. *First
#    come, first served* means that the first refusal ends admission.
#
# Each step asks the same questions again. When A's new block is full and none is free, somebody has
# to go: the one that was admitted *last*, B if nobody has entered since. It has the shortest stay
# behind it. The one that was admitted first is never the victim while others run, so that one at
# least always gets to its end.
#
# *What if nobody can be planned?* Then nothing ends, nothing comes free, and the next step finds
# the same. Such a scheduler *spins*: it is busy for ever and serves nobody. The engine notices a
# plan that is empty although somebody waits, and raises:

# %%
from dataclasses import replace

from minipaged import Components
from minipaged.sched.scheduler import Scheduler


class Cautious(Scheduler):
    """Lets nobody in unless half of the pool stays free."""

    def _may_enter(self, request, hits):  # hits: blocks found again, always none before lesson 09
        needed = self.manager.blocks_for(request.num_tokens)
        return needed <= self.manager.pool.num_free - self.manager.num_blocks // 2


for prompt in (12, 20):
    try:
        trace = simulate(
            [(prompt, 4)],
            components=replace(Components(), scheduler=Cautious),
            block_size=4,
            num_blocks=8,
        )
        print(f"prompt of {prompt}: done in {len(trace.steps)} steps")
    except RuntimeError as error:
        print(f"prompt of {prompt}: RuntimeError: {error}")

# %% [markdown]
# The rule looked harmless: it is a reserve, as many engines keep one. But a reserve must not count
# while nobody runs, because then nobody can give anything back.
#
# **Exercise 06.2** is the scheduler, **06.3** the counting of steps.
#
# ## What it needs from the memory
#
# A batch that changes at every step asks more of the memory. Under static batching one could set
# aside a rectangle, places times the longest, and clear it at the end. Now one request leaves and
# another one of any size sits down, hundreds of times a second.
#
# Orca did without blocks: a request that enters reserves one stretch of slots for the longest that
# it may become. A memory of 2,048 slots, prompts of 87 tokens, at most 300 outputs: how many fit?
# And how many if an answer is 54 tokens long, and only what is there is kept, in blocks of 16?
#
# 87 + 300 - 1 = 386 (the last token is never stored), and 2,048 // 386 is 5. With an answer of 54 a
# request ends with 140 tokens, 9 blocks; the memory has 128, and 128 // 9 is 14. While it is being
# written it is shorter still.
#
# The tutor, in a pool of 128 blocks, with 32 places, is asked four questions three times each.
# `max_tokens=300` allows more than its answers take: from 53 to 144 tokens, which nobody knows
# beforehand. `Watch` notes after each step how many run and how many of the held slots hold a
# token.

# %%
from minipaged import LLM

questions = ["What is a slot?", "What is a block table?", "What is EOS?", "What is a token?"] * 3


class Watch:
    """Notes, after each step, who runs and what they hold."""

    def __init__(self):
        self.running, self.held, self.written = [], 0, 0

    def event(self, kind, request_id, detail=""):
        pass

    def planned(self, engine, plan):
        pass

    def committed(self, engine, plan, result, outputs):
        running, manager = engine.scheduler.running, engine.manager
        self.running.append(len(running))
        self.held += manager.block_size * (manager.num_blocks - manager.pool.num_free)
        self.written += sum(request.num_computed_tokens for request in running)


texts = {}
for scheduler in ("orca", "unified"):
    llm = LLM("tutor", scheduler=scheduler, num_blocks=128, max_num_seqs=32)
    watch = Watch()
    llm.engine.observers.append(watch)
    texts[scheduler] = [a.text for a in llm.generate(questions, SamplingParams(max_tokens=300))]
    print(
        f"{scheduler:8} {len(watch.running)} steps, {max(watch.running)} at once at most,"
        f" {100 * watch.written / watch.held:.0f}% of the held slots are written"
    )
print("same texts:", texts["orca"] == texts["unified"])

# %% [markdown]
# Both schedule by iteration; only the memory differs. Twelve at once are all of them, and 144 steps
# are the longest answer, so nobody waited.
#
# *Is continuous batching nothing without paging, then?* That goes too far: Orca had the one without
# the other, and it gained. What paging adds is how many can run at once, and a place that finds no
# room in the memory gains nothing from being refilled.
#
# There is a second loss, the one of lesson 01: *holes*. Gaps of 20, 10 and 18 slots are free, each
# from the border of a block of 4 on, and somebody needs 30 in one piece. Does it fit? 48 are free,
# and it does not. In blocks it takes 8 of the 5 + 2 + 4 = 11 that the gaps hold. (Count each gap by
# itself: 10 slots are two whole blocks, and the half behind them is of no use.)
#
# Measured: sixty requests, three in four with 8 outputs and the others with 200, in 48 blocks. The
# first pool hands out neighbours only.

# %%
from minipaged.cache.contiguous import ContiguousBlockPool

draw = random.Random(1)
work = [(draw.randint(8, 24), draw.choice((8, 8, 8, 200))) for _ in range(60)]
in_a_row = replace(Components(), block_pool=ContiguousBlockPool)
for name, parts, scheduler in (
    ("reserved in one piece", in_a_row, "orca"),
    ("reserved, in blocks", Components(), "orca"),
    ("paged", Components(), "unified"),
):
    trace = simulate(work, components=parts, scheduler=scheduler, num_blocks=48, max_num_seqs=32)
    running = [len(record.work) for record in trace.steps]
    events = [event.kind for record in trace.steps for event in record.events]
    print(
        f"{name:22} {len(trace.steps):5} steps, {sum(running) / len(running):.1f} at once on"
        f" average, {events.count('preempted')} preemptions"
    )

# %% [markdown]
# The last column is the price. Whoever reserves nothing may run out, and then somebody is preempted
# and computed again. Here it is a bargain: 665 steps against 1,408. Lesson 08 shows when it is
# none.
#
# ## Where this is in other engines
#
# - **minipaged**: `Scheduler` in `minipaged/sched/scheduler.py`, the states in
#   `minipaged/request.py`. The baselines are `minipaged/sched/static.py` and `orca.py`.
# - **vLLM**: `Scheduler.schedule` in `vllm/v1/core/sched/scheduler.py`; `RequestStatus` in
#   `vllm/v1/request.py`. A request that has ended has a state for each reason, and there is no
#   SWAPPED: this version preempts by recomputing only.
# - **SGLang**: `get_next_batch_to_run` in `python/sglang/srt/managers/scheduler.py`. It keeps one
#   running batch, merges newcomers into it and filters out who has ended. Its word for preempting
#   is *retract* (`ScheduleBatch.retract_decode`).
# - **nano-vllm**: `Scheduler` in `nanovllm/engine/scheduler.py`, 90 lines, close to what you will
#   write. Prompts go first there, in steps of their own, and a victim becomes WAITING again.
#
# ## Check yourself
#
# **Exercise 06.4** asks seven questions about all this; your answers are checked like code.
#
# ## Next
#
# Your scheduler reads prompts whole. While one of 8,000 tokens is read, everybody else waits for
# their next token. Lesson 07 cuts prompts into pieces, and finds that the difference between
# reading and writing was never needed.
