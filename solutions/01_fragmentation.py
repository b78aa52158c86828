# %% [markdown]
# # Exercises 01 · Why contiguous memory wastes most of itself
#
# Four exercises. Lesson 01 (`lessons/01_fragmentation.ipynb`) leads up to each of them. Of each
# exercise only the cell in which you write is graded, so imports and helpers belong into it.

# %% [markdown]
# ## 01.1 Bytes of one token
#
# In every layer a token leaves one key and one value for each KV head. Each is a vector of
# `head_dim` numbers, and a number takes `dtype_bytes` bytes. How many bytes are that in all?
#
# - Llama-2-7B has 32 layers with 32 KV heads and `head_dim` 128: 524,288 bytes in 16 bits.
# - Llama-3-8B has 32 query heads, but only 8 KV heads: 131,072.
#
# The result is an `int`.

# %% exercise="01.1"
def kv_bytes_per_token(
    num_layers: int, num_kv_heads: int, head_dim: int, dtype_bytes: int = 2
) -> int:
    """Bytes of keys and values that one token leaves in the cache, over all layers."""
    ### BEGIN SOLUTION
    keys_and_values = 2
    return keys_and_values * num_layers * num_kv_heads * head_dim * dtype_bytes
    ### END SOLUTION


# %% check="01.1"
from minipaged.course.check import check

check("01.1", kv_bytes_per_token)

# %% [markdown]
# ## 01.2 Two ways to store the same requests
#
# `lengths` holds the tokens of each request, none of them above `max_model_len`. Return three
# numbers of slots, as a tuple:
#
# 1. what is reserved if each request gets `max_model_len` slots in a row,
# 2. what holds a token,
# 3. what is held in blocks of `block_size` slots, if each request has blocks of its own.
#
# For one request of 37 tokens, a limit of 64 and blocks of 16 that is `(64, 37, 48)`. A request
# without tokens holds its reservation, but no block.


# %% exercise="01.2"
def memory_use(lengths: list[int], max_model_len: int, block_size: int) -> tuple[int, int, int]:
    """Slots reserved in one stretch a request, slots used, slots held in blocks."""
    ### BEGIN SOLUTION
    reserved = len(lengths) * max_model_len
    blocks = sum((length + block_size - 1) // block_size for length in lengths)
    return reserved, sum(lengths), blocks * block_size
    ### END SOLUTION


# %% check="01.2"
from minipaged.course.check import check

check("01.2", memory_use)

# %% [markdown]
# Your function and the lesson's hundred requests. Here is what it should say: 204,800 slots
# reserved, 37,213 used, 38,000 in blocks.

# %%
import random

random.seed(2026)
hundred = [random.randint(40, 600) for _ in range(100)]
reserved, used, in_blocks = memory_use(hundred, 2048, 16)
print(f"reserved  {reserved:7,}   used {used / reserved:6.2%}   empty {reserved - used:7,}")
print(f"in blocks {in_blocks:7,}   used {used / in_blocks:6.2%}   empty {in_blocks - used:7,}")
assert (reserved, used, in_blocks) == (204_800, 37_213, 38_000)

# %% [markdown]
# ## 01.3 First fit
#
# `FirstFit` is a memory of `num_slots` slots, numbered from 0, that hands out stretches.
#
# - `allocate(length)` returns the first slot of the stretch that the caller may use from now on. Of
#   all gaps that are large enough it takes the one with the lowest start, and in it the lowest
#   slots. `MemoryError` if no gap is large enough, `ValueError` if `length` is below 1.
# - `free(start)` gives a stretch back. `ValueError` if none starts there: it was freed before, or
#   the address is wrong. Two gaps that touch are one gap from then on.
# - `num_free` is the number of free slots, `largest_gap` the length of the longest gap (0 if all is
#   taken).
#
# A call that raises changes nothing.


# %% exercise="01.3"
class FirstFit:
    """A row of slots from which requests take stretches, each in the first gap that holds it."""

    def __init__(self, num_slots: int) -> None:
        ### BEGIN SOLUTION
        self.num_slots = num_slots
        self.held = {}  # start -> length; the gaps are what lies between
        ### END SOLUTION

    def allocate(self, length: int) -> int:
        """Take `length` slots in a row, return the first; MemoryError or ValueError."""
        ### BEGIN SOLUTION
        if length < 1:
            raise ValueError(f"length is {length}: ask for at least one slot")
        gap = 0
        for start in [*sorted(self.held), self.num_slots]:
            if start - gap >= length:
                self.held[gap] = length
                return gap
            gap = start + self.held.get(start, 0)
        raise MemoryError(f"{length} slots in a row, but the largest gap has {self.largest_gap}")
        ### END SOLUTION

    def free(self, start: int) -> None:
        """Give back the stretch that starts there; ValueError if there is none."""
        ### BEGIN SOLUTION
        if start not in self.held:
            raise ValueError(f"nothing starts at slot {start}: was it freed before?")
        del self.held[start]
        ### END SOLUTION

    @property
    def num_free(self) -> int:
        """Free slots, wherever they lie."""
        ### BEGIN SOLUTION
        return self.num_slots - sum(self.held.values())
        ### END SOLUTION

    @property
    def largest_gap(self) -> int:
        """Length of the longest stretch of free slots."""
        ### BEGIN SOLUTION
        ends = [0, *(start + self.held[start] for start in sorted(self.held))]
        starts = [*sorted(self.held), self.num_slots]
        return max(start - end for start, end in zip(starts, ends, strict=True))
        ### END SOLUTION


# %% check="01.3"
from minipaged.course.check import check

check("01.3", FirstFit)

# %% [markdown]
# ## 01.4 Check yourself
#
# Nine questions. Work each out on paper, then write it down, or the expression for it.
#
# - **a** A model keeps 512 KiB per token, and each request reserves 8,192 tokens. How many GiB do
#   16 requests reserve?
# - **b** Lengths are spread evenly from 50 to 450, the reservation is 2,048 slots, requests grow by
#   one token a step. How many per cent of what is reserved holds a token, averaged over time? Two
#   decimals.
# - **c** Requests have 400 tokens at their end and reserved 4,096. How many per cent is that? One
#   decimal.
# - **d** How many whole sessions of 2,048 tokens of Llama-2-13B (40 layers, 40 KV heads, `head_dim`
#   128, 16 bits) fit into 54 · 10⁹ bytes?
# - **e** Blocks of 128 slots, and every number of tokens in the last block of a request is equally
#   likely. How many of its slots are empty on average?
# - **f** From 42 sessions to 280: how many times as many? Two decimals.
# - **g** A memory of 40 slots. A has reserved slots 0 to 15, B 20 to 31. A holds 3 tokens and will
#   end with 7, B holds 5 and will end with 12. Somebody asks for 10 slots in one piece and is
#   refused. How many slots are internal, reservation and external waste? A list of three.
# - **h** `gpu_memory_utilization` is the share of a card that weights, the intermediate results of
#   a step and the KV cache (all keys and values that are kept) may fill together. A card has 80 ·
#   10⁹ bytes, the share is 0.9, weights take 26 · 10⁹ and intermediate results 4 · 10⁹. How many
#   times 10⁹ bytes are left for the KV cache?
# - **i** Why not 1.0? What else uses the card (its driver, the exchange with other cards, other
#   programs) gets the rest only, and if that is too little, the server dies. Say it takes 2.5 · 10⁹
#   bytes at its worst. What is the highest share, in two decimals, that leaves so much?


# %% exercise="01.4"
def answers() -> dict[str, object]:
    """A number for each letter, such as {"a": 1, "b": 2.5}; for g a list of three."""
    ### BEGIN SOLUTION
    mean, mean_of_squares = 250, (450**3 - 50**3) / (3 * 400)
    return {
        "a": 16 * 8192 * 512 / 2**20,
        "b": round(100 * mean_of_squares / (2 * 2048 * mean), 2),
        "c": round(100 * 400 / 4096, 1),
        "d": 54 * 10**9 // (2 * 40 * 40 * 128 * 2 * 2048),
        "e": (128 - 1) / 2,
        "f": round(280 / 42, 2),
        "g": [16 - 7, (7 - 3) + (12 - 5), 4 + 8],
        "h": 80 * 0.9 - 26 - 4,
        "i": 0.96,
    }
    ### END SOLUTION


# %% check="01.4"
from minipaged.course.check import check

check("01.4", answers)

# %% [markdown]
# ## Run it
#
# Run this once the checks have passed. The engine serves 24 requests from 512 slots, in 32 blocks
# of 16. First your `memory_use` stands beside it: at every step it is asked how many slots the
# running requests hold in blocks, and the engine's pool is asked the same.

# %%
from minipaged.simulate import simulate
from minipaged.viz.palette import SIGNS
from minipaged.workload import SyntheticWorkload

workload = SyntheticWorkload(
    requests=24, prompt_len=(8, 40), output_len=(8, 88), arrival_rate=0.12, seed=117
)
arrivals = workload.arrivals()
arrivals = [a._replace(request_id=sign) for a, sign in zip(arrivals, SIGNS, strict=False)]
lengths = {a.request_id: len(a.prompt_token_ids) + a.params.max_tokens for a in arrivals}
trace = simulate(arrivals, block_size=16, num_blocks=32, max_num_seqs=8, max_model_len=128)

for record in trace.steps:
    tokens = [work.start_position + work.num_tokens for work in record.work]
    yours = memory_use(tokens, 128, 16)[2]
    engine = (32 - record.num_free) * 16
    assert yours == engine, f"step {record.step}: you say {yours} slots, the engine holds {engine}"
print(f"{len(trace.steps)} steps: always the same number of slots")

# %% [markdown]
# Then your `FirstFit` gets a memory of the same 512 slots and the same requests. Each time the
# engine admits one, it allocates; each time one has finished, it frees. First every request
# reserves 128 slots, the most that it may need; then exactly what it will have at its end, as if
# somebody could know that. Both go on until `FirstFit` refuses.


# %%
def until_refused(length_of):
    """The step at which FirstFit refuses, whom, and the memory then; None if it never does."""
    memory, starts = FirstFit(512), {}
    for record in trace.steps:
        for event in record.events:
            name = event.request_id
            if event.kind == "admitted":
                try:
                    starts[name] = memory.allocate(length_of[name])
                except MemoryError:
                    return record, name, memory, starts
            elif event.kind == "finished":
                memory.free(starts.pop(name))
    return None


print("reserving   step  asks for  free  largest gap  holds  the engine runs")
for what, length_of in (("128 slots", dict.fromkeys(lengths, 128)), ("its length", lengths)):
    record, name, memory, starts = until_refused(length_of)
    print(
        f"{what:10} {record.step:5} {length_of[name]:9} {memory.num_free:5} "
        f"{memory.largest_gap:12} {len(starts):6} {len(record.tables):16}"
    )
most = max(len(record.tables) for record in trace.steps)
preempted = sum(event.kind == "preempted" for record in trace.steps for event in record.events)
print(f"paged: all {len(lengths)} served, {most} at once at most, {preempted} preempted")

# %% [markdown]
# In the first line memory was short. In the second it was not: more than twice as many slots were
# free as the request asked for. This is that moment in your memory; striped is what is reserved and
# not written yet.

# %%
from minipaged.viz.figures import show_slots

written = {work.request_id: work.start_position + work.num_tokens for work in record.work}
spans = [(start, lengths[n], n, written[n]) for n, start in sorted(starts.items())]
show_slots(512, spans, title=f"Step {record.step}: {name} needs {lengths[name]} slots in a row")

# %% [markdown]
# ## An open question
#
# The gaps could be closed: move the live requests together, so that all that is free becomes one
# gap. What does such a move cost, in bytes read and written, for a request of 2,000 tokens of
# Llama-3-8B, and for a full cache of 60 · 10⁹ bytes? At 3.35 · 10¹² bytes per second (an H100's
# memory), how long does that take? Which of the three kinds of waste would be gone then, and which
# would remain?
#
# There are no points for this one. Write your answer into the next cell; `minipaged solution 01`
# then shows the model answer.

# %% [markdown] open=true
# ### BEGIN SOLUTION
# A token keeps 131,072 bytes, so 2,000 tokens are 262 · 10⁶. Each byte is read and written: 524 ·
# 10⁶ bytes, 0.16 ms. The full cache is 120 · 10⁹ bytes, 36 ms, several steps of the model, and
# meanwhile nobody's keys and values may be read or written. So the copying is affordable if it is
# rare. It also needs care: a stretch that moves by less than its length overlaps itself, and every
# address that somebody remembers has to change.
#
# Gone is external fragmentation, and nothing else. A compacted memory still reserves what a request
# may never need, and what it needs only later; with reservations that are all equal there was no
# external fragmentation to begin with, and compacting gains nothing at all. It also cannot let two
# requests share the same beginning, which blocks will do from lesson 05 on. Blocks need no copying,
# because any free block fits everybody.
# ### END SOLUTION
