# %% [markdown]
# # Exercises 07 · Chunked prefill and the token budget
#
# Two functions, a scheduler and eight questions. Lesson 07 (`lessons/07_chunked_prefill.ipynb`)
# leads up to them. At the end of this notebook your scheduler runs the engine.

# %% [markdown]
# ## 07.1 How a prompt is cut
#
# Write `chunks`. A prompt arrives while other requests decode. Each step computes at most `budget`
# tokens. The decodes come first, in the order of the list: one token each, as long as the budget
# lasts. The prompt gets what is left.
#
# `decodes_left` says how many more tokens each decode will write. One that has written its last is
# gone from the next step on. A decode that found no room in the budget waits, and so does the
# prompt. All numbers are at least 1; the list may be empty.
#
# Return one number for each step until the whole prompt is computed: its chunk in that step, 0 in a
# step in which it waits.


# %% exercise="07.1"
def chunks(prompt_len, budget, decodes_left):
    """The prompt's tokens in each step, from the one it arrives before to the one that ends it.

    chunks(10, 4, [2]) is [3, 3, 4]: the decode takes part in two steps.
    """
    ### BEGIN SOLUTION
    lengths = []
    waiting_for = list(decodes_left)
    while prompt_len > 0:
        served = min(budget, len(waiting_for))
        lengths.append(min(prompt_len, budget - served))
        prompt_len -= lengths[-1]
        after = [left - 1 for left in waiting_for[:served]]
        waiting_for = [left for left in after if left] + waiting_for[served:]
    return lengths
    ### END SOLUTION


# %% check="07.1"
from minipaged.course.check import check

check("07.1", chunks)

# %% [markdown]
# ## 07.2 The scheduler
#
# Write `UnifiedScheduler`. All of a scheduler but its decision is given in the next cell: adding,
# taking over what was computed, ending, failing. You decide who computes how many tokens. These
# help you, all of them attributes and methods of `self`:
#
# - `config`: `max_num_batched_tokens` is the budget, `max_num_seqs` how many may run.
# - `running`, `waiting`: requests, first come first. The methods below change them. `preempted`:
#   the victims of this step.
# - `new_plan()`: an empty plan, in which nobody has been preempted yet.
# - `manager.grow(request, n)`: makes room for its next n tokens. None if blocks are lacking;
#   then nothing has changed.
# - `put(plan, request, n, grown, sample)`: it computes its next n tokens. `grown` is what
#   grow returned, `sample` whether a token is drawn behind them.
# - `may_enter(request)`: whether memory lets a waiting request in. All its known tokens have
#   to fit.
# - `admit(request)`: it runs from now on, behind the others.
# - `choose_victim(running, request)`: whom to preempt for a request that finds no block.
# - `preempt(victim, plan)`: its blocks are free, and it waits first in line. If it was in the
#   plan, it is taken out; returned is how many tokens of the budget that gives back, else 0.
#
# A request has `num_tokens` (known) and `num_computed_tokens`.
#
# **The running ones first**, in their order: min(what is not computed, what is left of the budget).
# One for which that is 0 is left out, and so is one that was preempted a moment ago. For one that
# cannot grow, preempt victims until it can. How many tokens it gets stays as it was: the budget
# that a victim gives back is for those behind. If the victim is the request itself, this part ends.
#
# **Then, if nobody was preempted**, the waiting ones, from the first on, as long as there is budget
# and a place (`max_num_seqs`). The first that may not enter ends it: nobody overtakes.
#
# **Draw a token** where a request's last known token is computed, nowhere else.
#
# The check uses a desk like that of exercise 06.2: `VictimDesk(your class, blocks, block size,
# max_num_seqs, budget, victim)`. The last is the place in `running` of whom `choose_victim` names:
# -1 is the last admitted, 0 the first. `desk.lower(2)` lowers the budget,
# and at `desk.fail()` the plan is not carried out. `desk.step()` answers with a tuple for each
# request in the plan: its name, the first token that it computes, how many, and whether a token is
# drawn.

# %% given=true
from minipaged.course.bookkeeping import Bookkeeping


class SchedulerParts:
    """All of a scheduler but its decision."""

    def __init__(self, config, manager, *, victim, **policies):
        books = Bookkeeping(config, manager, victim=victim, **policies)
        self.config, self.manager, self.books = config, manager, books
        self.waiting, self.running, self.choose_victim = books.waiting, books.running, victim
        self.add, self.commit, self.finish = books.add, books.commit, books.finish
        self.fork, self.retract = books.fork, books.retract
        self.new_plan, self.put, self.preempt = books.new_plan, books.put, books.preempt
        self.may_enter, self.admit = books.may_enter, books.admit

    @property
    def preempted(self):
        return self.books.preempted


# %% exercise="07.2"
class UnifiedScheduler(SchedulerParts):
    """One budget a step for all, whatever they do."""

    def schedule(self):
        """Plan the next step and return the plan."""
        ### BEGIN SOLUTION
        plan = self.new_plan()
        left = self.serve_running(plan, self.config.max_num_batched_tokens)
        if not self.preempted:
            self.serve_waiting(plan, left)
        return plan
        ### END SOLUTION

    def serve_running(self, plan, budget):
        """Put those that run into the plan; return what is left of the budget."""
        ### BEGIN SOLUTION
        for request in self.running.copy():
            num_new = min(budget, request.num_tokens - request.num_computed_tokens)
            if num_new == 0 or request in self.preempted:
                continue
            while (grown := self.manager.grow(request, num_new)) is None:
                victim = self.choose_victim(self.running, request)
                budget += self.preempt(victim, plan)
                if victim is request:
                    return budget
            self.compute(plan, request, num_new, grown)
            budget -= num_new
        return budget
        ### END SOLUTION

    def serve_waiting(self, plan, budget):
        """Admit those that wait, with what is left of the budget."""
        ### BEGIN SOLUTION
        while self.waiting and budget > 0 and len(self.running) < self.config.max_num_seqs:
            request = self.waiting[0]
            if not self.may_enter(request):
                break
            num_new = min(budget, request.num_tokens)
            grown = self.manager.grow(request, num_new)
            self.admit(request)
            self.compute(plan, request, num_new, grown)
            budget -= num_new
        ### END SOLUTION

    def compute(self, plan, request, num_new, grown):
        """Put a request into the plan, and draw a token if this computes its last known one."""
        ### BEGIN SOLUTION
        is_last = request.num_computed_tokens + num_new == request.num_tokens
        self.put(plan, request, num_new, grown, is_last)
        ### END SOLUTION


# %% check="07.2"
from minipaged.course.check import check

check("07.2", UnifiedScheduler)

# %% [markdown]
# ## 07.3 Choose a budget
#
# Write `choose_budget`: the largest of several budgets with which no step takes longer than
# `limit` seconds while a prompt is read.
#
# A prompt of `prompt_len` tokens arrives. As many requests decode as `contexts` has entries, and
# all of them go on for longer than the prompt takes. An entry is how many tokens of that request
# are computed. Each step computes a token of each decode and, with the rest of the budget, a chunk.
#
# `step_seconds` is given: the cost model of the lesson. A step **computes** a number of tokens. It
# **reads** all that its requests have computed up to and including this step: of each decode its
# context and one token more each step, of the prompt all chunks so far and the present one.
#
# A budget with which the prompt gets nothing is no choice. If none will do, return 0.


# %% given=true
def step_seconds(num_tokens, num_read):
    """How long a step takes that computes num_tokens and reads the keys and values of num_read.

    Llama-3-8B in 16 bits on an H100, with an overhead of 2 milliseconds, as in the simulator.
    """
    reading = (16.06e9 + num_read * 131_072) / 3.35e12
    computing = num_tokens * 16.06e9 / 989e12
    return 0.002 + max(reading, computing)


# %% exercise="07.3"
def choose_budget(budgets, prompt_len, contexts, limit):
    """The largest budget whose longest step takes at most `limit` seconds; 0 if there is none.

    budgets: in any order. contexts: computed tokens of each request that decodes.
    """
    ### BEGIN SOLUTION
    count, best = len(contexts), 0
    for budget in budgets:
        done, read, longest = 0, sum(contexts), 0.0
        while done < prompt_len and budget > count:
            chunk = min(budget - count, prompt_len - done)
            done, read = done + chunk, read + count
            longest = max(longest, step_seconds(count + chunk, read + done))
        if done == prompt_len and longest <= limit:
            best = max(best, budget)
    return best
    ### END SOLUTION


# %% check="07.3"
from minipaged.course.check import check

check("07.3", choose_budget)

# %% [markdown]
# ## 07.4 Questions
#
# Answer on paper first; every question takes a minute or two. Then fill in the dict. For a, b, c
# and f: a step takes 10 ms, and 0.05 ms more for each token in it. 32 requests decode and take part
# in every step. A prompt of 8,000 tokens arrives.
#
# - **a.** The prompt is read in one step. What is the longest gap between two tokens of a request
#   that decodes, in ms?
# - **b.** No step may have more than 512 tokens. The longest gap now, in ms?
# - **c.** In how many steps is the prompt read then?
# - **d.** Another engine, budget 2,048. 40 requests decode; 3 others *verify* 4 guessed tokens each
#   (lesson 13: each computes its own next token and the guesses). A prompt of 64 tokens waits, and
#   one of 6,000 behind it. How many tokens of the long prompt are in this step?
# - **e.** What tells the scheduler how many tokens a request has to compute? One of `"flag"` (one
#   that says prefill or decode), `"queue"` (the one it stands in), `"outputs"` (whether it has
#   any), `"difference"` (known tokens less computed ones).
# - **f.** Back to b. How many ms after the first step began is the whole prompt read?
# - **g.** An engine never cuts a prompt. max_model_len is 4,096: prompt and outputs together, with
#   at least one output. What is the least budget with which no allowed prompt waits for ever?
# - **h.** Budget 512, and a prompt of 4,000. In how many steps is it read while 256 requests
#   decode, and in how many alone? A list of two numbers.


# %% exercise="07.4"
def answers():
    """Your answers: {"a": a number, ..., "e": a word, ..., "h": a list}."""
    ### BEGIN SOLUTION
    return {
        "a": 10 + 0.05 * 8032,
        "b": 10 + 0.05 * 512,
        "c": 17,
        "d": 1929,
        "e": "difference",
        "f": 16 * 35.6 + 10 + 0.05 * (32 + 320),
        "g": 4095,
        "h": [16, 8],
    }
    ### END SOLUTION


# %% check="07.4"
from minipaged.course.check import check

check("07.4", answers)

# %% [markdown]
# ## Run it: your scheduler in the engine
#
# Run these cells once the checks have passed. First over the ledger, with a small budget and so
# little memory that requests lose their blocks and come back. Your scheduler is to plan every step
# as the engine's own does.

# %%
from collections import Counter
from dataclasses import replace

from minipaged import Components
from minipaged.simulate import simulate

work = [(8, 12), (25, 20), (11, 7), (3, 16), (40, 9), (6, 14)]
size = {"block_size": 4, "num_blocks": 15, "max_num_batched_tokens": 10}
yours = replace(Components(), scheduler=UnifiedScheduler)
trace, reference = simulate(work, components=yours, **size), simulate(work, **size)
kinds = Counter(event.kind for record in trace.steps for event in record.events)
cut = {w.request_id for record in trace.steps for w in record.work if not w.sampled}
print(f"{len(trace.steps)} steps, {kinds['preempted']} preemptions, in chunks: {sorted(cut)}")
print(f"most tokens in a step: {max(record.num_tokens for record in trace.steps)}")
same = [record.work for record in trace.steps] == [record.work for record in reference.steps]
print("the same tokens in the same steps as the reference:", same)

# %% [markdown]
# Now the tutor writes. Its prompts have 83 to 93 tokens, and a step computes at most 16.

# %%
from minipaged import LLM

questions = ["What is a slot?", "What is a block table?", "What is EOS?"]
tight = {"block_size": 16, "num_blocks": 20, "max_num_batched_tokens": 16}
llm = LLM("tutor", components=yours, **tight)
texts = [answer.text for answer in llm.generate(questions)]
for question, text in zip(questions, texts, strict=True):
    print(question, "-", text[:60])
metrics = llm.engine.metrics
print(f"{metrics.steps_total} steps, {metrics.num_preemptions_total} preemptions")
print("same texts as the reference:", texts == [a.text for a in LLM("tutor").generate(questions)])

# %% [markdown]
# ### Plant a fault
#
# This scheduler is yours, except that it draws a token behind every chunk, whether the prompt is
# computed or not. The tutor gets the same questions. What will it answer?


# %%
class DrawsAlways(UnifiedScheduler):
    def compute(self, plan, request, num_new, grown):
        self.put(plan, request, num_new, grown, True)


hasty = replace(Components(), scheduler=DrawsAlways)
for budget in (512, 16):
    llm = LLM("tutor", components=hasty, max_num_batched_tokens=budget)
    answer = llm.generate(questions[:1])[0]
    print(f"budget {budget}: {answer.text[:70]!r}")

# %% [markdown]
# With the large budget no prompt is cut and nothing is wrong. With 16 the first token is drawn
# after 16 tokens of the prompt and put behind the prompt's end, then another after 32. The question
# is still read to its end, but behind it stand tokens that answer nothing. Such a fault is found
# only with prompts longer than the budget.
#
# ## Your budget on the simulator
#
# Does the budget that you chose keep its promise in the engine? Eight requests decode, a prompt of
# 4,000 tokens arrives, and no step is to take longer than 20 milliseconds. Both halves are yours:
# the choice and the scheduler.

# %%
from minipaged import SamplingParams
from minipaged.workload import Arrival


def arrivals(num_decodes, prompt_len, context=200):
    """Requests that decode, and a long prompt that comes once all of them have begun."""
    long = SamplingParams(max_tokens=150, ignore_eos=True)
    few = SamplingParams(max_tokens=2, ignore_eos=True)
    decodes = [Arrival(f"D{k}", [k] * context, long, 0) for k in range(num_decodes)]
    return [*decodes, Arrival("P", list(range(prompt_len)), few, 20)]


budgets = [128, 256, 512, 1024, 2048, 4096]
chosen = choose_budget(budgets, 4000, [200] * 8, limit=0.020)
print("chosen:", chosen)
for tokens in budgets:
    record = simulate(arrivals(8, 4000), components=yours, max_num_batched_tokens=tokens)
    during = [step for step in record.steps if any(w.request_id == "P" for w in step.work)]
    reading = [step for step in during if step.computed["P"] < 4000]
    longest = max(step.elapsed for step in reading)
    first = sum(step.elapsed for step in reading)
    mark = "  <- yours" if tokens == chosen else ""
    print(
        f"budget {tokens:5}: longest step {longest * 1000:5.1f} ms, prompt read in "
        f"{first * 1000:5.1f} ms{mark}"
    )

# %% [markdown]
# ## An open question
#
# An engine with chunks has a budget of 512. A colleague says: "Chunked prefill only makes prefill
# slower. We should switch it off." What do you measure before you answer, which of the numbers
# speak for the colleague, and for whom would it get worse? A few sentences will do.
#
# There are no points for this one. Write your answer into the next cell; `minipaged solution 07`
# then shows the model answer.

# %% [markdown] open=true
# ### BEGIN SOLUTION
# **What to measure.** For requests with long prompts, the time from their arrival to their first
# token. For all others, the longest gap between two of their tokens, and how often a long prompt
# arrives: a stall that happens once an hour is another matter than one every second. Both from the
# same load, with and without the limit.
#
# **What speaks for the colleague.** The prompt does take longer. In the lesson's figures it is 82
# milliseconds instead of 67: each further step has its overhead and reads the weights once more,
# and the decodes' tokens are computed along with it. With a small budget it is far worse, because
# a step with few tokens takes as long as reading the weights takes, however short the chunk. If
# nobody watches the text appear, as with a batch of documents over night, gaps harm nobody and the
# largest budget that memory allows is right.
#
# **For whom it gets worse.** For everybody whose text is being written when a long prompt comes.
# Their gap grows from 10 to 67 milliseconds here, and it grows with the prompt: without a limit, it
# is the user with the longest document who decides how long all others wait. The budget bounds it,
# whatever is sent. So the answer is seldom on or off. It is the largest budget that keeps the
# longest step within what readers accept, which is what exercise 07.3 computes.
# ### END SOLUTION
