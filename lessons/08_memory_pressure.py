# %% [markdown]
# # 08 · Memory pressure: swap or recompute
#
# **The question.** Requests are let in when they fit. Then each of them writes on, and every 16
# tokens it wants one more block. What happens when a request in the middle of its answer finds
# none?
#
# Somebody has to give way. You will decide who, and what becomes of what it had computed; then
# watch what goes wrong when it comes back too soon. Allow 60 minutes with the exercises. You need
# the pool of lesson 02 and the table of lesson 03.

# %% [markdown]
# ## A number first
#
# Blocks of 4 tokens, 6 of them. Two requests, A and B, each with a prompt of 8 tokens and 12
# outputs. How many blocks does each hold when its prompt is read? How many at its end? (The last
# output is never stored.) Do both fit at the beginning, and at the end?
#
# 2 blocks each at the beginning, together 4 of 6. At the end 8 + 12 - 1 = 19 slots, so 5 blocks
# each: 10 of 6. Somewhere on the way a block will be missing. Find the step in the picture; the
# *budget*, the tokens that one step may compute over all requests, is 6.

# %%
from minipaged.simulate import simulate
from minipaged.viz.widgets import step_through

work = [(8, 12), (8, 12)]
small = {"block_size": 4, "num_blocks": 6, "max_num_batched_tokens": 6}
trace = simulate(work, **small)


def story(trace):
    """Admissions, preemptions and ends, with the blocks that each request holds in that step."""
    for record in trace.steps:
        held = "  ".join(f"{name} {len(table)}" for name, table in record.tables.items())
        for event in record.events:
            if event.kind in ("admitted", "preempted", "finished"):
                what = f"{event.request_id} {event.kind}"
                print(f"step {record.step:2}: {what:14}blocks: {held}, {record.num_free} free")


story(trace)
step_through(trace, step=6)

# %% [markdown]
# In step 5 A has 12 computed tokens in 3 full blocks, B holds the 3 others, and no block is free.
# In step 6 A's 13th token finds none. So B is *preempted*. All its blocks go back to the pool, and
# it waits, first in line.
#
# *Is B's answer lost?* No. B's prompt and the 4 outputs that it has are *known* tokens, a list of
# numbers that the scheduler keeps. What is gone is the keys and values of the 11 that were
# computed. B returns in step 13, when A is done, and computes all 12 known tokens in two steps,
# prompt and outputs alike, as if they were one longer prompt. The step that computes the last of
# them samples its fifth output. (A return like this one is case 16 of this course's list of faults
# met in the field: FastDeploy #3080, nano-vllm #144.)
#
# *Does it come out the same?* The next token depends on the tokens before it and on nothing else.
# So B's user sees a pause, and the same words.

# %%
from collections import Counter


def tokens_of(trace):
    """What each request got."""
    tokens = {}
    for record in trace.steps:
        for one in record.work:
            tokens.setdefault(one.request_id, []).extend(one.sampled)
    return tokens


def figures(trace):
    """Steps, preemptions, tokens computed again, blocks moved out, longest gap in steps."""
    kinds = Counter(event.kind for record in trace.steps for event in record.events)
    done, last = {}, {}
    again = gap = 0
    for record in trace.steps:
        for one in record.work:
            name, end = one.request_id, one.start_position + one.num_tokens
            again += max(0, min(done.get(name, 0), end) - one.start_position)
            done[name] = max(done.get(name, 0), end)
            if one.sampled:
                gap = max(gap, record.step - last.get(name, record.step))
                last[name] = record.step
    moved = sum(len(record.swap_out) for record in trace.steps)
    return len(trace.steps), kinds["preempted"], again, moved, gap


roomy = simulate(work, **small | {"num_blocks": 10})
print("steps, preempted, again, moved, longest gap:", figures(trace))
print("the same with 10 blocks, room for both:     ", figures(roomy))
print("same tokens as with room for both:", tokens_of(trace) == tokens_of(roomy))

# %% [markdown]
# 22 steps; with room for both it is 14. 11 tokens are computed twice. And B's user, who got a token
# every step before, waits 9 steps for one.
#
# ## Who gives way
#
# A has 3,000 computed tokens, B 1,200 and C 400; they were admitted in this order, and one block is
# missing. Compute for each of these rules how many tokens are computed again: the *last admitted*
# goes; the one with the *fewest computed* tokens; the one with the *most blocks*.
#
# 400, 400 and 3,000. "Drop the longest" sounds right, because it frees the most, and it throws away
# the most work. Now let C have a prompt of 5,000 tokens, all computed. The last admitted costs
# 5,000, the fewest computed 1,200. So the *last* is not the *smallest*. What taking the last
# guarantees is something else: the first in line is never taken while others run, so it moves on,
# ends, and gives its blocks back.
#
# A fourth rule is the *lowest priority*, for servers where some users matter more. What do the
# first three cost in a run? Sixteen requests with short and long prompts, 48 blocks of 4; four such
# workloads added up.

# %%
import random


def mixed(seed):
    draw = random.Random(seed)
    return [(draw.choice([8, 16, 64]), draw.randrange(8, 60)) for _ in range(16)]


print(f"{'victim':20}steps  preempted  tokens again")
for victim in ("last-admitted", "fewest-computed", "most-blocks"):
    rows = [
        figures(
            simulate(
                mixed(seed), block_size=4, num_blocks=48, victim=victim, max_num_batched_tokens=32
            )
        )
        for seed in range(4)
    ]
    steps, preempted, again, *_ = map(sum, zip(*rows, strict=True))
    print(f"{victim:20}{steps:5}{preempted:11}{again:14}")

# %% [markdown]
# Most blocks: the fewest preemptions, the most work, the most steps. Fewest computed gives up the
# least each time, and pays in number: a small victim frees little, so it takes more of them, and it
# tends to be the one that has just come back. No rule wins everywhere.
#
# **Exercise 08.1** is a rule that joins two of these: the fewest computed, but never the first in
# line.
#
# ## Two ways to lose nothing
#
# The victim's keys and values can be dropped and computed again (*recompute*), or copied to the
# memory of the *host*, the computer in which the GPU sits, and back later (*swap*). Which takes less
# time? Do the sum for Llama-2-7B and 1,000 tokens: 524,288 bytes a token (lesson 01); a *bus*, the
# line between host and GPU (PCIe 4.0), that carries 32 GB/s in one direction; 6.738·10⁹ parameters,
# each of which costs a token 2 *FLOP* (a multiplication and an addition); a device that reaches 500
# TFLOP/s, 500·10¹² a second.
#
# Out and in: 2 · 1,000 · 524,288 / 32·10⁹ s = 32.8 ms. Again: 2 · 1,000 · 6.738·10⁹ / 500·10¹² s =
# 27.0 ms. It should be computed again. And the 70B, with ten times as many parameters?

# %%
from minipaged.config import DeviceCosts
from minipaged.sched.preemption import recompute_seconds, swap_seconds

models = {  # parameters, layers, hidden size, bytes of keys and values a token
    "Llama-2-7B": (6.738e9, 32, 4096, 524_288),
    "Llama-2-13B": (13.016e9, 40, 5120, 819_200),
    "Llama-3-8B": (8.030e9, 32, 4096, 131_072),
    "Llama-3-70B": (70.554e9, 80, 8192, 327_680),
    "Qwen2.5-0.5B": (494_032_768, 24, 896, 12_288),
}


def costs_of(name, **other):
    return DeviceCosts(*models[name], **other)


print("ms for 1,000 tokens   swap  recompute   parameters per byte")
for name, (parameters, *_, kv_bytes) in models.items():
    swap = 2 * 1000 * kv_bytes / 32e9
    again = 2 * 1000 * parameters / 500e12
    print(f"{name:18}{1e3 * swap:8.1f}{1e3 * again:11.1f}{parameters / kv_bytes:22,.0f}")

# %% [markdown]
# > **A claim, recomputed.** *Small models recompute, 70B swaps* (claim C4). Of these five only
# > Llama-2-7B recomputes, 13B is nearly a tie, and the smallest of all swaps. Both times grow with
# > the number of tokens, so it cancels: recompute wins while parameters per byte of a token stay
# > below 500·10¹² / 32·10⁹ = 15,625. Llama-3-8B is larger than Llama-2-7B and has a quarter of its
# > bytes a token, so moving is four times cheaper. Whether heads share keys and values decides, not
# > the size.
#
# *Does it cancel?* Nearly. Each token also reads all tokens before it: 2 · layers · hidden size ·
# S² FLOP for S tokens together, as each sees half of them on average (claim C5). (The *hidden size*
# is how many numbers a token has between two layers.) For the 70B that is 1.9 % on top at 2,048
# tokens. How much is it at 16,384? And at 131,072?
#
# Eight times 1.9 is 15 %, and eight times that is 122 %. Long contexts favour moving. So even the
# 7B has a *crossover*, a length from which on it should move:

# %%
from minipaged.viz.plots import lines
from minipaged.viz.widgets import explore

for name in ("Llama-3-70B", "Llama-3-8B"):
    parameters, layers, hidden, _ = models[name]
    shares = [layers * hidden * s / parameters for s in (2048, 16_384, 131_072)]
    print(f"{name}: attention adds", ", ".join(f"{100 * share:.1f} %" for share in shares))


def compare(model, bus):
    costs = costs_of(model, host_bandwidth=1e9 * bus)
    lengths = [1000, 2000, 4000, 8000, 11_000, 12_000, 16_000, 24_000, 32_000]
    series = {
        "swap": [1e6 * swap_seconds(costs, n) / n for n in lengths],
        "recompute": [1e6 * recompute_seconds(costs, n) / n for n in lengths],
    }
    title = f"{model}, bus of {bus} GB/s"
    return lines(lengths, series, title=title, xlabel="tokens", ylabel="ms for each 1,000 tokens")


explore(
    compare,
    start={"model": "Llama-2-7B", "bus": 32},
    model=list(models),
    bus=[4, 8, 16, 32, 64],
)

# %% [markdown]
# The lines of the 7B cross near 11,000 tokens. Now lower the bus. From which rate on does the
# Llama-3-8B recompute 1,000 tokens?
#
# From 8 GB/s down. That is nearer than it looks. A block of it is 16 · 131,072 bytes = 2 MiB, but
# not in one piece: each of 32 layers has its keys and its values apart, so it is 64 pieces of 32
# KiB. A piece takes 1 µs on the bus. Suppose that starting a copy costs 5 µs (a guess, to see what
# it does): what is left of 32 GB/s? One part in six, about 5. With blocks of 4 a piece is a quarter
# as large for the same 5 µs. The PagedAttention paper (section 7.3) reports it so: with small
# blocks swapping is slow, and from 16 to 64 both ways come out about even. vLLM's V1 engine kept
# recompute alone. It needs no second pool and waits for no copies, and where prefix caching (lesson
# 09) still knows the blocks, part of the work is already done.
#
# > **Another claim, recomputed.** *16k tokens of a 70B are about 5 GB, 156 ms one way* (claim C6).
# > 16,384 · 327,680 bytes are 5.37 GB, so 168 ms, and 336 ms out and in. 32 GB/s is what the bus
# > carries before any overhead.
#
# What each way costs whom: swap takes host memory and the bus; recompute takes the budget of the
# next steps, from everybody who runs. **Exercise 08.2** is this sum, with a price for each block.
#
# *Can a request be swapped for ever?* `max_preemptions` limits how often; after that it is
# recomputed. Where is the count kept? If the scheduler has one for all, three preemptions of A use
# up what B was promised. It belongs to the request (claim C14).
#
# ## Thrash
#
# Back to A and B. In the run above B stayed out until all its known tokens fitted. That is
# `admission="full"`. Older engines asked for less: does the *first chunk* fit, that is, what is
# left of this step's budget? B knows 12 tokens when it is preempted, and A leaves 5 of the budget.

# %%
chunk = small | {"admission": "chunk"}
trace = simulate(work, **chunk)
story(trace)
print("steps, preempted, again, moved, longest gap:", figures(trace))
held = {name: [len(r.tables.get(name, [])) for r in trace.steps] for name in "AB"}
lines(range(22), held, title="admission by the first chunk", xlabel="step", ylabel="blocks held")

# %% [markdown]
# B is let in because 5 tokens fit, and then finds no block for the rest: out again. It comes in
# twice for nothing, 5 tokens each, and 21 tokens are computed again in place of 11. An engine that
# spends its time on taking back what it has just given *thrashes* (case 15, vLLM #28018). All in
# all it still takes 22 steps, because A never stops.
#
# Remedies, one by one. Besides waiting for room for all known tokens there are:
#
# - **headroom**: an admission has to leave so many blocks free;
# - **water marks**, low and high: limits on the free blocks, see below;
# - **back-off**: whoever was preempted stays out for so many steps, and twice as long the next
#   time;
# - **swap**, here to 6 blocks of the host.

# %%
remedies = {
    "first chunk": chunk,
    "all known tokens": small,
    "headroom 1": chunk | {"admission_headroom": 1},
    "high mark 3": chunk | {"high_water_blocks": 3},
    "marks 1 and 3": chunk | {"low_water_blocks": 1, "high_water_blocks": 3},
    "marks 1 and 2": chunk | {"low_water_blocks": 1, "high_water_blocks": 2},
    "back-off 2": chunk | {"backoff_steps": 2},
    "back-off 4": chunk | {"backoff_steps": 4},
    "swap": chunk | {"preemption": "swap", "num_host_blocks": 6},
}
print("                  steps  preempted  tokens again  blocks moved out")
for name, options in remedies.items():
    steps, preempted, again, moved, _ = figures(simulate(work, **options))
    print(f"{name:18}{steps:5}{preempted:11}{again:14}{moved:18}")

# %% [markdown]
# All known tokens, one block of headroom, or a high mark alone: 1 preemption. With a back-off of 2
# B comes too early once more; with 4 it does not return before A is done. With swap B's 3 blocks
# are moved out and in, nothing is computed again, and one step is saved. Two marks take more steps
# than none. Why?
#
# ## Two marks
#
# *Hysteresis* means two thresholds in place of one, as in a thermostat that heats below 19 degrees
# and stops at 21. Both marks count *free* blocks (claim C15; read as used blocks, the rule is
# backwards):
#
# - fewer than the **low** mark: nobody enters, and a running request has to leave, before anybody
#   lacks a block;
# - the low mark or more, but fewer than the **high** mark: nobody enters, nobody has to leave;
# - the high mark or more: others may enter.
#
# 1,000 blocks, marks 50 and 200. What happens with 30, 120 and 250 free? Preempt; hold; admit.
#
# Now the two lines with two marks. Because of the low mark B has to leave as soon as no block is
# free, in step 4, although nobody needs one before step 6. That is the price of such a mark.
#
# The *gate*, which says who may enter, can make it worse. Here is a careless one: it looks at what
# is free *before* an admission. 2 are free, the high mark is 2, B takes both, 0 are left, and in
# the next step somebody has to go: B. The engine's gate also asks what it will leave. **Exercise
# 08.3** is such a gate.

# %%
from dataclasses import replace

from minipaged import Components
from minipaged.sched.admission import Gates


class CarelessGates(Gates):
    def __call__(self, blocks_needed, num_free):
        return blocks_needed <= num_free and num_free >= self.high


for gates in (CarelessGates, Gates):
    marks = {"low_water_blocks": 1, "high_water_blocks": 2}
    trace = simulate(work, components=replace(Components(), admission=gates), **chunk, **marks)
    steps, preempted, again, *_ = figures(trace)
    print(f"{gates.__name__}: {preempted} preemptions, {again} again")
    print("  free:", *(record.num_free for record in trace.steps))

# %% [markdown]
# The watermark of vLLM's older engine is a single mark: blocks that admission has to leave free. It
# makes nobody leave.
#
# ## Too many at once
#
# `max_num_seqs` says how many may run at once. A tempting idea: set it so high that it never holds
# anybody back. Take 24 requests whose prompts fill 10 blocks of 16 and whose end fills 15, and 90
# blocks. How many fit at the beginning, how many at the end? 9 and 6. Does it harm to let in 9?
#
# The picture has three engines: the reference (all known tokens have to fit, the last admitted
# goes); the same, admitting by the first chunk; and that one, dropping the one with the most
# blocks. Time is that of the simulator's model of an H100 with Llama-3-8B.

# %%
many = [(160, 80)] * 24
pool = {"num_blocks": 90, "max_num_batched_tokens": 64}
engines = {
    "reference": {},
    "first chunk": {"admission": "chunk"},
    "first chunk, most blocks": {"admission": "chunk", "victim": "most-blocks"},
}
limits = [2, 4, 5, 6, 7, 8, 12, 24]
speed = {name: [] for name in engines}
print("max_num_seqs  engine                      preempted  computed  tokens a second")
for limit in limits:
    for name, options in engines.items():
        trace = simulate(many, max_num_seqs=limit, **pool, **options)
        computed = sum(record.num_tokens for record in trace.steps)
        speed[name].append(24 * 80 / trace.steps[-1].time)
        if limit in (6, 24):
            preempted = figures(trace)[1]
            print(f"{limit:12}  {name:26}{preempted:11}{computed:10}{speed[name][-1]:17.0f}")
lines(limits, speed, title="output tokens a second", xlabel="max_num_seqs", log_x=True)

# %% [markdown]
# Up to 6 all three are the same: nobody is preempted, and each request more brings speed. From 7 on
# more is promised than there is. The reference gains nothing, and with a limit of 24 it computes a
# fifth more than is needed. The second computes nearly twice as much, 10,583 tokens for 5,736, at
# hardly another speed. In the third it is three times as much, and the speed falls by 13 %.
#
# *Only 13 %?* Here a step's time is mostly reading the weights, so extra tokens in it are nearly
# free. On a machine that is busy computing they are not: there the third engine would do a third of
# the work it could. That is the "collapse" that people report from such a setting. It takes three
# things: more promised than fits, a return that comes too soon, and victims with much to lose.
#
# What does a reserve buy? The same 24 with max_num_seqs 16:

# %%
print(
    "                        preempted  tokens again  longest gap (steps)  output tokens a second"
)
for name, options in {
    "reference": {},
    "headroom 9": {"admission_headroom": 9},
    "headroom 20": {"admission_headroom": 20},
    "first chunk": {"admission": "chunk"},
    "  and marks 4, 20": {"admission": "chunk", "low_water_blocks": 4, "high_water_blocks": 20},
    "  and back-off 8": {"admission": "chunk", "backoff_steps": 8},
    "  and swap": {"admission": "chunk", "preemption": "swap", "num_host_blocks": 90},
}.items():
    trace = simulate(many, max_num_seqs=16, **pool, **options)
    _, preempted, again, _, gap = figures(trace)
    print(f"{name:24}{preempted:9}{again:14}{gap:21}{24 * 80 / trace.steps[-1].time:24.0f}")

# %% [markdown]
# With 20 blocks of headroom nobody is preempted, and nobody waits more than a step for the next
# token; that costs 2 % of the speed. Without it somebody waits 64 steps in the middle of a
# sentence. Which of the two is better depends on who reads.
#
# *And a request that is too long for the whole pool?* Alone in 4 blocks of 4, a prompt of 12 with 8
# outputs to come ends after 5 of them, because 12 + 5 - 1 = 16 slots (case 2). The reason that the
# engine gives is `length`: a limit was reached. There is nobody to preempt but itself, and that
# would change nothing, however often it is done. Of `max_tokens`, `max_model_len` and the pool the
# tightest ends a request.
#
# ## Where this is in other engines
#
# - **minipaged**: `_grow_or_preempt` and `_preempt` in `minipaged/sched/scheduler.py`, the rules in
#   `victim.py`, `preemption.py` and `admission.py` beside it, the host's blocks in
#   `minipaged/cache/swap.py`.
# - **vLLM**: `schedule` in `vllm/v1/core/sched/scheduler.py`: `running.pop()`, the last admitted,
#   or with priorities the largest (priority, arrival time). `num_computed_tokens` becomes 0, and
#   the request goes to the front of the line. The older `vllm/core/scheduler.py` had
#   `PreemptionMode.SWAP` beside `RECOMPUTE`, and `block_manager.py` beside it the watermark.
# - **SGLang**: `retract_decode` in `python/sglang/srt/managers/schedule_batch.py`. It sorts by
#   outputs, and those with the fewest go first, of equals the one with the longest prompt. It frees
#   enough for several steps ahead, and from then on admission expects every request to grow by
#   more (`new_token_ratio`), an estimate that sinks again slowly: hysteresis and back-off in one.
# - **nano-vllm**: `preempt` in `nanovllm/engine/scheduler.py`, the last in line, recompute only.
#
# ## Check yourself
#
# **Exercise 08.4** asks eight questions with other numbers. Behind it is one without points: a
# server that moves the same requests out and in all day, and how to stop it.
#
# ## Next
#
# Open `exercises/08_memory_pressure.ipynb`. A preempted request computes again what it had computed
# before. In lesson 09 blocks are found by what they hold, and then much of that is still there.
