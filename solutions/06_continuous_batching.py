# %% [markdown]
# # Exercises 06 · Continuous batching
#
# The states of a request, a scheduler, a few lines that count steps, and seven questions. Lesson 06
# (`lessons/06_continuous_batching.ipynb`) leads up to them. At the end of this notebook your
# scheduler runs the engine.

# %% [markdown]
# ## 06.1 The states of a request
#
# Write `RequestState`. A new request is in the state `"WAITING"`. The moves that it may make are
# those of the drawing in the lesson:
#
#     WAITING    to  RUNNING, FINISHED
#     RUNNING    to  PREEMPTED, SWAPPED, FINISHED
#     PREEMPTED  to  RUNNING, FINISHED
#     SWAPPED    to  RUNNING, PREEMPTED, FINISHED
#     FINISHED   to  nowhere
#
# Any other is refused with a `RuntimeError`: also one to the state that the request is in already,
# and one to a word that is no state at all.
#
# Three things beside that:
#
# - **A refusal says all that one needs to know.** Its message names the request, the state that it
#   is in, the state that was asked for, and every state that it may go to. (`words_missing` in the
#   check lists what a message lacks.) After a refusal nothing has changed.
# - **`num_preemptions`** counts how often the request lost its place. If its keys and values went
#   to the host's memory (`"SWAPPED"`) and are dropped there later (`"PREEMPTED"`), it has lost its
#   place once.
# - **`holds_blocks`**: whether the request may have blocks of the device's pool, the one of
#   lesson 02. The host's memory has blocks of its own, which do not count here.


# %% exercise="06.1"
class RequestState:
    """Where a request is: WAITING, RUNNING, PREEMPTED, SWAPPED or FINISHED.

    Attributes: request_id, state, num_preemptions.
    """

    def __init__(self, request_id):
        """A new request waits."""
        ### BEGIN SOLUTION
        self.request_id = request_id
        self.state = "WAITING"
        self.num_preemptions = 0
        self.legal = {
            "WAITING": ["RUNNING", "FINISHED"],
            "RUNNING": ["PREEMPTED", "SWAPPED", "FINISHED"],
            "PREEMPTED": ["RUNNING", "FINISHED"],
            "SWAPPED": ["RUNNING", "PREEMPTED", "FINISHED"],
            "FINISHED": [],
        }
        ### END SOLUTION

    @property
    def holds_blocks(self):
        """True in the one state in which a request may hold blocks."""
        ### BEGIN SOLUTION
        return self.state == "RUNNING"
        ### END SOLUTION

    def move_to(self, state):
        """Change the state. RuntimeError, and nothing changed, if the move is not legal."""
        ### BEGIN SOLUTION
        if state not in self.legal[self.state]:
            legal = ", ".join(self.legal[self.state]) or "none"
            raise RuntimeError(
                f"request {self.request_id} cannot go from {self.state} to {state}; "
                f"states that it may go to: {legal}"
            )
        if self.state == "RUNNING" and state != "FINISHED":
            self.num_preemptions += 1
        self.state = state
        ### END SOLUTION


# %% check="06.1"
from minipaged.course.check import check

check("06.1", RequestState)

# %% [markdown]
# ## 06.2 A scheduler
#
# The engine asks a scheduler for a *plan* at every step, carries it out, and hands it back with the
# new tokens. Everything that is the same in any scheduler is in the next cell, which is given and
# is there at grading. Read its method names; what is inside you need not know.

# %% given=true
from collections import deque

from minipaged.plan import StepPlan
from minipaged.request import FinishReason, RequestStatus, sample_id
from minipaged.sched.items import make_item


class SchedulerBase:
    """What every scheduler needs beside its decisions."""

    def __init__(self, config, manager, **policies):
        self.config, self.manager = config, manager
        self.waiting = deque()  # requests; the next to be admitted stands first
        self.running = []  # requests, in the order of their admission
        self.preempted = []  # the victims of the step that is being planned
        self.requests = {}  # every live request, by its id
        self.ended = []  # ids that the next plan has to name
        self.num_plans = 0

    def add(self, request):
        """A request arrives."""
        self.requests[request.request_id] = request
        self.waiting.append(request)

    def new_plan(self):
        """An empty plan. Nobody has been preempted in it so far."""
        plan = StepPlan(self.num_plans, finished=self.ended)
        self.num_plans += 1
        self.ended, self.preempted = [], []
        return plan

    def put(self, plan, request, num_new, grown):
        """Into the plan: the next `num_new` tokens of a request; grown is what grow returned."""
        plan.items.append(make_item(request, num_new, *grown))

    def preempt(self, request):
        """Take a running request's blocks away; it waits first in line and is computed again."""
        self.running.remove(request)
        request.move_to(RequestStatus.PREEMPTED)
        request.num_preemptions += 1
        self.manager.release(request)
        self.waiting.appendleft(request)
        self.preempted.append(request)

    def finish(self, request, reason):
        """End a request, wherever it is, and free its blocks. reason: "stop" or "length"."""
        in_line = request in self.waiting
        (self.waiting if in_line else self.running).remove(request)
        request.finish(FinishReason(reason))
        self.manager.release(request)
        del self.requests[request.request_id]
        self.ended.append(request.request_id)

    def commit(self, plan, result):
        """The plan was carried out: `take` over what it brought. The requests with new tokens."""
        changed = []
        for item in plan.items:
            request = self.requests[item.request_id]
            samples = self.samples_of(request, result)  # of the tokens so far
            new_tokens = result.token_ids.get(item.request_id, [])
            request.num_inflight_tokens = 0
            self.take(request, len(item.token_ids), new_tokens)
            if item.sample is not None:
                changed += [request, *samples]
        return changed

    def samples_of(self, request, result):
        """Further samples of one prompt (n > 1): each is queued like any other request."""
        made = []
        for index, token in enumerate(result.forks.get(request.request_id, []), 1):
            sample = request.branch(sample_id(request.request_id, index))
            sample.sample_index = index
            self.add(sample)
            self.take(sample, 0, [token])
            made.append(sample)
            request.num_forks_due = 0
        return made

    def fork(self, parent, child):
        """Somebody asks for a request that goes on from a live one: queued, computed anew."""
        self.add(child)

    def retract(self, plan):
        """The plan could not be carried out: all that run wait again."""
        for request in reversed(list(self.running)):
            self.preempt(request)
        self.ended = plan.finished + self.ended


# %% [markdown]
# Write `FCFSScheduler`: first come, first served, prompts whole, decided anew at every step. Two
# methods are missing.
#
# **`schedule()`** returns the plan of one step.
#
# 1. *Those that run go on.* In the order of admission, each of `self.running` computes one token,
#    the one that it got last. `self.manager.grow(request, 1)` makes room for it and returns what
#    `put` wants to know. It returns `None` if a block is needed and none is free: then the request
#    that was admitted *last* is preempted, and the same one tries again, until there is room or it
#    was the victim itself.
# 2. *Then others may enter*, from the front of `self.waiting`. A request computes all its known
#    tokens at once (`request.num_tokens`: the prompt, and after a preemption its outputs too).
#    Whoever enters leaves `waiting`, moves to `RequestStatus.RUNNING` and stands last in `running`.
#    **The first that cannot enter ends it: nobody overtakes.** There are three reasons:
#    - `self.config.max_num_seqs` requests run already;
#    - its tokens do not fit into what is left of `self.config.max_num_batched_tokens`, the *budget*
#      of a step, in which each running request has used one. One exception: a request that is
#      longer than the whole budget would wait for ever, so it enters when the plan is empty, and
#      has the step to itself;
#    - `grow` returns `None`: not enough blocks are free.
#
# **`take(request, num_computed, new_tokens)`** is called for each request of a plan that has been
# carried out. `num_computed` more of its tokens have their keys and values now. The new tokens are
# put behind its known ones, one by one. A request ends (`self.finish(request, reason)`, for one of
# two reasons)
#
# - for `"stop"` at a token of `request.stop_token_ids`, if it has *more* than
#   `request.params.min_tokens` outputs then, that token included;
# - for `"length"` when it has `request.max_output_tokens` outputs. Look at the other one first.
#
# A request has `num_tokens` (known), `num_computed_tokens`, `num_output_tokens`, and the list
# `token_ids`, to which you append. The other attributes are looked after by the manager.
#
# The check plays the engine at a *desk*: `SchedulerDesk(your class, blocks, block_size,
# max_num_seqs, budget, True)`, the last for the exception above. `desk.add("A", 5, 3)` is a prompt
# of 5 tokens with 3 outputs at most; two further arguments say which outputs are stop tokens, and
# `min_tokens`. `desk.step()` asks for a plan, looks at it, and commits it. It answers with a tuple
# for each request in the plan: its name, the first token that it computes, how many, and whether a
# new token is drawn; or, where something is wrong, with a sentence. `desk.queues()` tells who runs,
# who waits, and how many blocks are free.


# %% exercise="06.2"
class FCFSScheduler(SchedulerBase):
    """First come, first served; whole prompts; iteration-level."""

    def schedule(self):
        """The plan of one step."""
        ### BEGIN SOLUTION
        plan = self.new_plan()
        while len(plan.items) < len(self.running):
            request = self.running[len(plan.items)]
            grown = self.manager.grow(request, 1)
            if grown is None:
                self.preempt(self.running[-1])
            else:
                self.put(plan, request, 1, grown)
        budget = self.config.max_num_batched_tokens - len(plan.items)
        while self.waiting:
            request = self.waiting[0]
            num_new = request.num_tokens
            if len(self.running) == self.config.max_num_seqs or (num_new > budget and plan.items):
                break
            grown = self.manager.grow(request, num_new)
            if grown is None:
                break
            self.running.append(self.waiting.popleft())
            request.move_to(RequestStatus.RUNNING)
            self.put(plan, request, num_new, grown)
            budget -= num_new
        return plan
        ### END SOLUTION

    def take(self, request, num_computed, new_tokens):
        """Note what was computed, append the new tokens, end the request if it is due."""
        ### BEGIN SOLUTION
        request.num_computed_tokens += num_computed
        for token in new_tokens:
            request.token_ids.append(token)
            count = request.num_output_tokens
            if token in request.stop_token_ids and count > request.params.min_tokens:
                self.finish(request, "stop")
                return
            if count == request.max_output_tokens:
                self.finish(request, "length")
                return
        ### END SOLUTION


# %% check="06.2"
from minipaged.course.check import check

check("06.2", FCFSScheduler)

# %% [markdown]
# ## 06.3 Count the steps
#
# Write `batch_steps(lengths, slots, refill)`. `lengths` holds how many steps each request takes, in
# order of arrival; all are there at the start, and prompts cost nothing. `slots` requests can run
# at once: a slot is a place in the batch here, not room for a token.
#
# - `refill=False`: static batching. The next `slots` requests start together, and nobody starts
#   until the longest of them has ended.
# - `refill=True`: continuous batching. A slot whose request has ended takes the next one in the
#   very next step.
#
# Return a tuple: how many steps it takes until all have ended, and how many slot-steps were idle
# meanwhile. All slots count, also those for which nobody is left. Each length is at least 1;
# without requests there is nothing to do, and both numbers are 0.


# %% exercise="06.3"
def batch_steps(lengths, slots, refill):
    """(steps, idle slot-steps) of requests of these lengths on so many slots."""
    ### BEGIN SOLUTION
    if refill:
        ends = [0] * slots
        for length in lengths:
            first = ends.index(min(ends))
            ends[first] += length
        steps = max(ends)
    else:
        starts = range(0, len(lengths), slots)
        steps = sum(max(lengths[start : start + slots]) for start in starts)
    return steps, steps * slots - sum(lengths)
    ### END SOLUTION


# %% check="06.3"
from minipaged.course.check import check

check("06.3", batch_steps)

# %% [markdown]
# ## 06.4 Questions
#
# Answer on paper first. Then fill in the dict.
#
# - **a.** Which of these moves of a request is refused? One of `"WAITING to RUNNING"`, `"RUNNING to
#   PREEMPTED"`, `"PREEMPTED to RUNNING"`, `"WAITING to FINISHED"`, `"WAITING to PREEMPTED"`.
# - **b.** A static batch of four has 30, 200, 50 and 80 steps to do. How many per cent of its
#   slot-steps are idle?
# - **c.** A static batch of three: A, B and C have 120, 8 and 40 outputs. In how many of the steps
#   does B's slot idle?
# - **d.** A memory of 16,384 slots. No request ever has more than 250 tokens, but each *may* have
#   2,048. How many can run at once if each reserves what it may need, and how many in blocks of 16?
#   A list of two numbers.
# - **e.** Contiguous memory has gaps of 400, 1,600 and 1,000 slots, each beginning on a multiple of
#   16. The next request needs 2,000. In one piece, does it fit? And in blocks of 16: how many
#   whole blocks stay free in these gaps once it is in? A list: `True` or `False`, and a number.
# - **f.** Every request has a prompt of 16,000 tokens, which takes 400 ms to read, and 5 outputs.
#   The first output comes from the step that reads the prompt; each of the others takes a step of
#   20 ms. Suppose that better batching made those steps free. How many times as fast would a
#   request be served?
# - **g.** `max_num_seqs` is 4, the budget is 64 tokens a step, 100 blocks of 16 are free, prompts
#   are read whole, nobody runs. Ten requests wait, each with a prompt of 20 tokens. How many enter
#   in the first step?


# %% exercise="06.4"
def answers():
    """Your answers, by letter: a text for a, lists for d and e, numbers for the others."""
    ### BEGIN SOLUTION
    return {
        "a": "WAITING to PREEMPTED",
        "b": 55,
        "c": 112,
        "d": [8, 64],
        "e": [False, 62],
        "f": 1.2,
        "g": 3,
    }
    ### END SOLUTION


# %% check="06.4"
from minipaged.course.check import check

check("06.4", answers)

# %% [markdown]
# ## Run it: the engine on your scheduler
#
# Run these cells once the checks have passed. First the sixteen answers of the lesson on four
# slots, over the ledger. A prompt of one token makes a request of n outputs take n steps, so that
# the engine counts what your function counts.

# %%
import random
from dataclasses import replace

from minipaged import Components
from minipaged.simulate import simulate

yours = replace(Components(), scheduler=FCFSScheduler)
random.seed(42)
lengths = [random.randint(10, 120) for _ in range(16)]
trace = simulate([(1, n) for n in lengths], components=yours, max_num_seqs=4)
print("your function, static and continuous:")
print(batch_steps(lengths, 4, False), batch_steps(lengths, 4, True))
print(f"the engine on your scheduler: {len(trace.steps)} steps")

# %% [markdown]
# Now a pool that is far too small, so that requests lose their blocks and come back. A scheduler
# may change who waits and how long; it must not change a single token. The cell compares yours with
# the engine's own, request by request.


# %%
def tokens_of(trace):
    """What each request got: its id and its tokens."""
    tokens = {}
    for record in trace.steps:
        for work in record.work:
            tokens.setdefault(work.request_id, []).extend(work.sampled)
    return tokens


def preemptions(trace):
    events = [event.kind for record in trace.steps for event in record.events]
    return events.count("preempted")


work = [(8, 12), (5, 20), (11, 7), (3, 16), (9, 9), (30, 14)]
memory = {"block_size": 4, "num_blocks": 12, "max_num_batched_tokens": 24}
trace = simulate(work, components=yours, **memory)
reference = simulate(work, **memory)
for name, one in (("yours", trace), ("the engine's own", reference)):
    print(f"{name}: {len(one.steps)} steps, {preemptions(one)} preemptions")
print("same tokens:", tokens_of(trace) == tokens_of(reference))

# %% [markdown]
# The two plan differently: F's 30 tokens are more than the budget of 24. Yours lets F in alone,
# once nobody runs; the engine's own reads the prompt in pieces, beside the others. That is
# lesson 07.
#
# Now the tutor writes, in a pool of 24 blocks. After each step `manager.check()` verifies that no
# block is lost, and at the end `engine.check()` that every request stands where its status says.

# %%
from minipaged import LLM

questions = ["What is a slot?", "What is a block table?", "What is EOS?"]
llm = LLM("tutor", components=yours, block_size=16, num_blocks=24)


class Checked:
    """Watches the engine: checks it after every step."""

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
texts = [answer.text for answer in llm.generate(questions)]
llm.engine.check()
reference_texts = [answer.text for answer in LLM("tutor").generate(questions)]
for question, text in zip(questions, texts, strict=True):
    print(question, "-", text[:60])
print(
    f"{checked.steps} steps and {llm.engine.metrics.num_preemptions_total} preemptions, planned by"
    f" the class {type(llm.engine.scheduler).__name__}"
)
print("same texts as the reference:", texts == reference_texts)

# %% [markdown]
# ### Plant a fault
#
# With the first of these schedulers whoever is preempted goes to the *back* of the line. The second
# lets the short overtake the long: before each step it moves the shortest that
# waits to the front. A, B and C have prompts of 8, 8 and 20 tokens, and the ten behind them of 4.
# Does one of the two give wrong tokens? Who waits for what? Guess before you run the cell.


# %%
class BackOfTheLine(FCFSScheduler):
    """A victim waits behind all others."""

    def preempt(self, request):
        super().preempt(request)
        self.waiting.rotate(-1)


class Overtaking(FCFSScheduler):
    """Before each step the shortest that waits goes to the front of the line."""

    def schedule(self):
        if self.waiting:
            shortest = min(self.waiting, key=lambda request: request.num_tokens)
            self.waiting.remove(shortest)
            self.waiting.appendleft(shortest)
        return super().schedule()


def finished_in(trace):
    events = [(event.request_id, r.step) for r in trace.steps for event in r.events]
    return dict(events)


work = [(8, 24), (8, 24), (20, 4), *[(4, 12)] * 10]
memory = {"block_size": 4, "num_blocks": 14, "max_num_seqs": 3}
print("Steps in all, the step in which each request ends, and whether the tokens are right:")
print(f"{'':16} steps  ", " ".join(f"{name:>3}" for name in "ABCDEFGHIJKLM"))
for kind in (FCFSScheduler, BackOfTheLine, Overtaking):
    trace = simulate(work, components=replace(Components(), scheduler=kind), **memory)
    ends = finished_in(trace)
    print(
        f"{kind.__name__:16} {len(trace.steps):5}  ",
        " ".join(f"{ends[name]:3}" for name in "ABCDEFGHIJKLM"),
        tokens_of(trace) == tokens_of(simulate(work, **memory)),
    )

# %% [markdown]
# No token is wrong in any of them. A scheduler that plans what it has been given cannot spoil an
# answer; it spoils somebody's time. In the second line B, which was preempted, ends in step 59 and
# not in step 26: its user has read the beginning long ago and waits for the rest. In the third, C
# with its prompt of 20 ends in step 58 and not in step 3. Ten that came later went first, and if
# small ones never ceased to come, C would never run. Two of the three finish *sooner* than yours
# as a whole. That is how such rules get into engines.
#
# ## An open question
#
# Some models keep no keys and values. They carry a *state* of a fixed size along, whatever the
# length of the text (Mamba, RWKV, linear attention). What of paging, of continuous batching and of
# the scheduler is left for such a model? A few sentences will do.
#
# There are no points for this one. Write your answer into the next cell; `minipaged solution 06`
# then shows the model answer.

# %% [markdown] open=true
# ### BEGIN SOLUTION
# **Paging** loses its point. A request needs the same memory at its first token and at its last, so
# nothing grows, nothing is reserved in vain, and no gap is too small. A table with one entry a
# request is left: an array of states and a free queue over it.
#
# **Continuous batching** keeps all of its worth. Answers still differ in length, so a batch that
# waits for its longest still idles, and the weights are still read once for all that run.
#
# **The scheduler** becomes simpler and keeps its form. A request fits if a state is free, so the
# test for memory becomes the test for a place, and nobody is preempted because somebody grew. It
# may still be preempted for one who matters more, and then swapping is cheap: one state, of a size
# known in advance. The budget of tokens stays, since a long prompt still delays all others in its
# step, and it can still be cut into pieces: the state after a piece is all that the next one needs.
#
# **Sharing a beginning** changes most. A state stands for all tokens up to one place and cannot be
# cut there or anywhere before. So copies of it must be kept at chosen places, each as large as the
# whole state, where a block table had a block for every 16 tokens. And a fork copies at once:
# everything in the state is written at the next token.
# ### END SOLUTION
