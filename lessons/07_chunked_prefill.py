# %% [markdown]
# # 07 · Chunked prefill and the token budget
#
# **The question.** Eight people watch their answers appear, word by word. A ninth sends a document
# of 4,000 tokens. What do the eight see in the meantime, and can they be spared?
#
# Computing a prompt is called *prefill*. Writing on, one token a step, is called *decode*, and a
# request that does so is *a decode* for short. This lesson puts both into one step and limits what
# a step may hold. Then you write the scheduler that does so. Allow 60 minutes with the exercises.
# You need lesson 06: requests that join and leave at every step.

# %% [markdown]
# ## A number first
#
# How long does a step take? We need a *cost model*, a formula in place of a GPU. A step does two
# things at the same time and takes as long as the slower one:
#
# - it **reads** the model's weights once, however many tokens are in the step, and the keys and
#   values of every token that its requests have so far;
# - it **computes** each token that is in the step.
#
# For Llama-3-8B on an H100, a large GPU: the weights are 16.06 GB, memory delivers 3,350 GB a
# second. A token takes 16.06 billion operations, and 989,000 billion are done in a second. Add 2
# milliseconds for all else. (Lesson 12 is about these figures; the simulator has used them all
# along.)
#
# Work out three steps: one with 8 tokens, one with 4,000, one with 4,008.
#
# Reading the weights takes 16.06 / 3,350 = 4.8 ms, computing a token 16.2 microseconds. Eight
# tokens are computed in 0.13 ms, while the weights are still being read: 2 + 4.8 = 6.8 ms. 4,000
# tokens take 65 ms to compute, long after the weights are read: 67 ms. Eight more make it 67.1.
#
# So the eight are used to a token every 6.8 milliseconds. If the document is computed in one step,
# they wait for 67, in which ten tokens would have come: a *stall*. A longer document makes a longer
# one. *Does it help to be in that step?* Hardly. A token comes out at the step's end, so whoever is
# in it waits for it as well. Whoever is not waits for it and for the next step.
#
# ## See the stall
#
# Two words for what people notice. The *time to first token*, TTFT, runs from a request's arrival
# to its first token. A *gap* lies between two tokens of one answer.
#
# The simulator serves eight requests D0 to D7 with short prompts; before step 10 comes P, the
# document. The first scheduler is called `prefill-first`: as long as prompts wait, a step computes
# prompts alone. Engines began that way. Its limit for a step is set so high that P fits.

# %%
from itertools import pairwise

from minipaged import SamplingParams
from minipaged.simulate import simulate
from minipaged.workload import Arrival

ARRIVES = 10


def run(scheduler, budget, num_decodes=8, prompt_len=4000):
    """A trace: some requests that decode, and before step 10 a long prompt, P."""
    long, short = (SamplingParams(max_tokens=n, ignore_eos=True) for n in (120, 3))
    work = [Arrival(f"D{k}", [k] * 16, long, 0) for k in range(num_decodes)]
    work.append(Arrival("P", list(range(prompt_len)), short, ARRIVES))
    return simulate(work, scheduler=scheduler, max_num_batched_tokens=budget)


def moments(trace, name):
    """When a request got its tokens, in milliseconds since P arrived."""
    start = trace.steps[ARRIVES - 1].time
    shares = ((record.time, w) for record in trace.steps for w in record.work)
    return [1000 * (when - start) for when, w in shares if w.request_id == name and w.sampled]


def longest_gap(trace):
    """The longest gap of D0 that ends after P arrived."""
    came = moments(trace, "D0")
    return max(later - one for one, later in pairwise(came) if later > 0)


def told(trace, steps):
    for record in trace.steps[ARRIVES - 1 : ARRIVES - 1 + steps]:
        chunk = sum(w.num_tokens for w in record.work if w.request_id == "P")
        print(
            f"  step {record.step}: {record.elapsed * 1000:5.1f} ms, {len(record.work)} requests, "
            f"{record.num_tokens:5} tokens, {chunk:5} of them P's"
        )
    print(f"  P's first token after {moments(trace, 'P')[0]:.1f} ms")
    print(f"  longest gap of the others {longest_gap(trace):.1f} ms")


print("prefill-first, P in one step")
told(run("prefill-first", 8192), 4)

# %% [markdown]
# In step 10 P is alone: 67.0 ms in which nobody else gets anything. Then all nine decode. Between
# the token of step 9 and that of step 11 lie 74 ms, eleven times the usual gap. (Steps take 7.0 ms
# from now on and not 6.8: they read P's keys and values as well.)
#
# ## Cut it, and share the step
#
# A prompt need not be computed at once. Its first 512 tokens leave their keys and values in blocks;
# the next 512 read them there, as a decode reads what came before it. Such a piece is a *chunk*.
# Nothing about the result changes.
#
# How many chunks of at most 512 are 4,000 tokens, and how long is the last? 7 · 512 = 3,584, and
# 416 are left: eight chunks.
#
# *Is that enough?* Predict the gap of the eight if steps with chunks still have no decodes in them.

# %%
print("prefill-first, at most 512 tokens a step")
told(run("prefill-first", 512), 10)

# %% [markdown]
# It has become worse: 87.9 ms. Every step is short now, but eight of them come one behind the other
# and none has a decode in it. Cutting alone frees nobody. The steps have to be shared: each of the
# eight gets its token in every step, and what is left of the 512 is the chunk. How many steps does
# P need then?

# %%
print("one budget for all, 512 tokens a step")
shared = run("unified", 512)
told(shared, 10)

# %% [markdown]
# 512 - 8 = 504 a step: seven chunks of 504 and one of 472. The longest gap is 10.3 ms. P pays for
# it: its first token comes after 82.0 ms instead of 67.0.

# %%
from minipaged.viz.plots import lines

shown = {
    "P in one step": run("prefill-first", 8192),
    "chunks alone": run("prefill-first", 512),
    "chunks and decodes": shared,
}
first = 6
series = {}
for name, trace in shown.items():
    came = moments(trace, "D0")[first : first + 18]
    series[name] = [later - one for one, later in pairwise(came)]
lines(
    range(first + 1, first + 18),
    series,
    title="What one of the eight notices",
    xlabel="number of its token, from 0",
    ylabel="gap before it (ms)",
)

# %% [markdown]
# ## One budget, no phases
#
# The number that limits a step is the *token budget*, `max_num_batched_tokens`. The rule for
# sharing it can be told in two stages. First every decode gets one token of the budget; if there
# is no block for that token, somebody is preempted. Then, with what remains, prompts: those begun
# go on, new ones come in, and the last one is cut at min(what it needs, what remains). Decodes
# first, because somebody is reading along; prompts fill up.
#
# Told like this, the scheduler has to know who is in which stage. Look at a request's two numbers
# instead: how many of its tokens are *known*, prompt and outputs so far (`num_tokens`), and how many
# are *computed* (`num_computed_tokens`). What is the difference for a new prompt of 300 tokens, one
# that has computed 200 of them, a request that decodes, one that was preempted with 300 + 40 tokens?
#
# 300, 100, 1 and 340. There are no kinds of requests, there is a distance, and every step lets
# computed chase known. So:
#
# 1. Those that **run**, in the order of their admission, get min(distance, what is left of the
#    budget). Who finds no block preempts the last admitted and tries again.
# 2. If nobody was preempted, those that **wait** are admitted by the same formula, the first one
#    first, as long as there is budget, a free place (`max_num_seqs`) and memory for all their
#    known tokens.
# 3. A token is **drawn** only where the last known token was computed.
#
# That is vLLM's rule and that of the engine here. It covers more than it was made for. A request
# that verifies four guessed tokens (lesson 13) has distance 5. A prompt of which 3,000 tokens were
# found in a cache (lesson 09) has only the rest as its distance. To the scheduler both are
# numbers like any other; neither needs a line of code of its own.
#
# *Where did "decodes first" go?* It follows. Whoever is cut has used the budget up, so nobody is
# admitted behind it before it is through. The one in the middle of its prompt is therefore always
# the last of those that run, and all before it decode.
#
# ## Four small stories
#
# Where engines got this wrong, it was in corners like these. Predict each before you run it. A
# decode has a prompt of one token and 5 outputs, P has 3 outputs. The decodes come before step 0,
# P before step 1; in the first story, where it is alone, P comes before step 0.


# %%
def story(title, prompt_len, budget, num_decodes, outputs=3):
    """Print who computes how many tokens in each step; * where a token is drawn."""
    params = [SamplingParams(max_tokens=n, ignore_eos=True) for n in (5, outputs)]
    work = [Arrival(f"D{k}", [k], params[0], 0) for k in range(num_decodes)]
    work += [Arrival("P", list(range(prompt_len)), params[1], 1 if num_decodes else 0)]
    trace = simulate(work, block_size=4, max_num_batched_tokens=budget)
    print(title)
    for record in trace.steps:
        shares = [f"{w.request_id} {w.num_tokens}{'*' * len(w.sampled)}" for w in record.work]
        print(f"  step {record.step}: {'  '.join(shares)}")
    return trace


story("a prompt of 9, budget 8, nobody else", 9, 8, 0)
story("a prompt of 12, budget 4, one decode", 12, 4, 1)
beside_two = story("a prompt of 10, budget 8, two decodes", 10, 8, 2)
beside_three = story("a prompt of 4, budget 2, three decodes", 4, 2, 3)
# %% [markdown]
# *The first.* The second chunk of P has one token, and looks like a decode. It is the end of a
# prompt: the first token is drawn in step 1, none in step 0, and three outputs take four steps. An
# engine that drew one behind every chunk would answer a question that it has half read.
#
# *The second.* Chunks of 3, 3, 3, 3, and the decode gets its token in each of those steps.
#
# *The third.* What two decodes leave of 8 is 6. Nobody fixed the size of a chunk. Step through it
# (A and B are the decodes, C is P):

# %%
from minipaged.viz.widgets import step_through

step_through(beside_two, step=1)

# %% [markdown]
# *The last.* A budget of 2 is not enough for three decodes. In each step two get a token, the first two.
# The third begins when they have ended, and P beside it. No step is empty, none is above 2, and
# nobody waits for ever, because the ones in front end. But whoever stands behind them may wait
# through a whole answer: keep the budget well above `max_num_seqs`.
#
# **Exercise 07.1** (`exercises/07_chunked_prefill.ipynb`) is how a prompt is cut, **07.2** the
# scheduler.
#
# ## Play with it
#
# One bar a step, from P's arrival until it is read; under it is the step's number. Its height is the
# milliseconds that the step takes, and so the gap of everybody who decodes.

# %%
from minipaged.viz.plots import bars
from minipaged.viz.widgets import explore


def steps_of(budget, decodes, prompt):
    trace = run("unified", budget, decodes, prompt)
    reading = [r for r in trace.steps[ARRIVES:] if r.computed.get("P", prompt) < prompt]
    taken = {"ms": [1000 * record.elapsed for record in reading]}
    first, longest = moments(trace, "P")[0], max(taken["ms"])
    title = f"P's first token after {first:.0f} ms, longest gap {longest:.1f} ms"
    return bars([str(record.step) for record in reading], taken, title=title, ylabel="ms a step")


explore(
    steps_of,
    start={"budget": 512, "decodes": 8, "prompt": 4000},
    budget=[512, 1024, 2048, 4096, 8192],
    decodes=[1, 8, 32, 60],
    prompt=[500, 2000, 4000, 8000],
)

# %% [markdown]
# Move the prompt to 8,000: more bars, none of them higher. That is what the budget buys: the
# longest step no longer depends on what somebody sends.
#
# ## Which budget?
#
# A large one is good for P, a small one for the others. Both against the budget:

# %%
budgets = [64, 128, 256, 512, 1024, 2048, 4096]
traces = [run("unified", budget) for budget in budgets]
both = {
    "P's first token (ms)": [moments(trace, "P")[0] for trace in traces],
    "longest gap of the others (ms)": [longest_gap(trace) for trace in traces],
}
lines(budgets, both, title="A prompt of 4,000 beside 8 decodes", xlabel="budget", log_x=True)

# %% [markdown]
# On the right every halving of the budget nearly halves the gap and costs P a few milliseconds.
# From 256 downwards it is the other way round: the gap stays at 7, and P's time doubles each
# time. Why there? Find the number of tokens whose computing takes as long as reading the weights.
#
# The 16.06 is in both times and cancels: 989,000 / 3,350 = 295 tokens. A step with fewer takes no
# less time, so a chunk below that size only wastes steps. For a GPU that computes less, or a model in 8 bits, the place is
# another one. The usual way to choose: say how long a gap may be, and take the largest budget that
# keeps it. That is **exercise 07.3**. You will read of fixed values, 512 for one card and 2,048 for
# another; with the figures here 2,048 means gaps of 35 ms. Whether that is right depends on what
# your readers accept, not on the card alone.
#
# ## What chunks cost
#
# *So chunked prefill makes prefill slower?* Yes: 82.0 ms instead of 67.0 with budget 512. Where do
# the 15 ms go? Seven further steps with 2 ms each, and 64 tokens of the eight, 1 ms.
#
# Two more costs do not show in the time here, because reading goes on while computing takes longer.
# Each step reads the weights again: eight times 16.06 GB instead of once. And each chunk reads the
# keys and values of all chunks before it. By hand, for chunks of 512 alone in their steps: 512 +
# 1,024 + … + 3,584 + 4,000 = 18,336 tokens read, instead of 4,000. At 131,072 bytes a token that is
# 2.4 GB, beside 128 of weights. The second cost grows with the square of the prompt:

# %%
print("prompt    chunks   tokens read      keys and values      weights")
for prompt_len in (4_000, 16_000, 64_000):
    ends = [*range(512, prompt_len, 512), prompt_len]
    print(
        f"{prompt_len:6,} {len(ends):9} {sum(ends):13,} {sum(ends) * 131_072 / 1e9:17,.1f} GB"
        f" {len(ends) * 16.06:9,.0f} GB"
    )

# %% [markdown]
# Be careful with what the model leaves out: computing attention itself, whose cost grows with what
# is read. On a real card the last chunk of a very long prompt takes longer than the first.
#
# > **A claim, recomputed.** *A prompt of 4,000 tokens is read in chunks of 512.* It takes 8 chunks,
# > and the last one has 416 tokens. That holds for a prompt alone. A chunk of 512 *and*
# > 32 decodes in a budget of 512, as pictures often have it, does not work out: the decodes are in
# > the budget, and 480 remain.
#
# The idea is that of Sarathi-Serve (Agrawal and others, OSDI 2024), which measured it: batches
# without a stall, and much more load served within the same limit on gaps. Another way out is to
# compute prompts on machines of their own and to send the keys and values over, which lesson 15
# looks at.
#
# ## Where this is in other engines
#
# - **minipaged**: `_schedule_running` and `_schedule_waiting` in `minipaged/sched/scheduler.py`;
#   `minipaged/sched/prefill_first.py` is the stall; the cost model is `CostModel` in
#   `minipaged/exec/sim_exec.py`.
# - **vLLM**: `Scheduler.schedule` in `vllm/v1/core/sched/scheduler.py`. A comment at its beginning
#   says that there is no decoding phase and no prefill phase, and tells of the two numbers.
# - **SGLang**: `PrefillAdder` in `python/sglang/srt/managers/schedule_policy.py` cuts prompts at
#   `chunked_prefill_size`. Its steps are prompts or decodes; `--enable-mixed-chunk` mixes them.
# - **nano-vllm**: `Scheduler.schedule` in `nanovllm/engine/scheduler.py` looks for prompts first and
#   decodes only if there are none: the stall, in twenty lines.
# - **Sarathi-Serve**: `sarathi/core/scheduler/sarathi_scheduler.py`, beside the schedulers that it
#   is compared with.
#
# ## Check yourself
#
# **Exercise 07.4** asks eight questions with other numbers: gaps and chunks, what is left for a
# prompt, and what a budget must leave room for. A question without points at the end lets you
# answer a colleague who wants to switch all this off.
#
# ## Next
#
# Open `exercises/07_chunked_prefill.ipynb`. Your scheduler will serve the tutor with a budget of 16
# tokens and a pool that is too small. What to do when memory runs out, and whom to preempt, is
# lesson 08.
