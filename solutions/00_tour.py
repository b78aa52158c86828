# %% [markdown]
# # Exercises 00 · A tour of the engine
#
# One exercise. Lesson 00 (`lessons/00_tour.ipynb`) leads up to it. Replace
# `raise NotImplementedError()` by your own code, then run the cell below it.

# %% [markdown]
# ## 00.1 How many blocks?
#
# The memory of the engine is cut into blocks, each with room for `block_size` tokens. Write
# `blocks_needed`: how many blocks hold `num_tokens` tokens?
#
# - 37 tokens in blocks of 16 need 3: two full ones, and a third for the 5 that are left over.
# - 48 tokens need 3 as well; the third is full. 49 tokens need 4.
# - 0 tokens need 0.
#
# The result is a number of blocks, so it is an `int`. Both arguments are whole numbers,
# `num_tokens` at least 0, `block_size` at least 1.
#
# Only the next cell is graded. If it uses an import or a helper, write that into it as well.

# %% exercise="00.1"
def blocks_needed(num_tokens: int, block_size: int) -> int:
    """How many blocks of block_size tokens hold num_tokens tokens."""
    ### BEGIN SOLUTION
    full, left_over = divmod(num_tokens, block_size)
    return full + 1 if left_over else full
    ### END SOLUTION


# %% check="00.1"
from minipaged.course.check import check

check("00.1", blocks_needed)

# %% [markdown]
# ## Run it
#
# Run this once the check has passed. Your function then stands beside the real engine. The cell
# serves the eight questions of the lesson again. At every step, for every request that computes
# something, it asks your function how many blocks that many tokens need, and compares that with the
# length of the request's block table.

# %%
from minipaged import LLM
from minipaged.trace import Recorder

questions = [
    "What is a block table?",
    "What is a slot?",
    "What is continuous batching?",
    "What is EOS?",
    "What is paged attention?",
    "What does block_size mean?",
    "What is the token budget?",
    "What is preemption?",
]
llm = LLM("tutor", block_size=16, num_blocks=96)
recorder = Recorder(llm.engine)
llm.engine.observers.append(recorder)
llm.generate(questions)

compared, at_the_end = 0, {}
for record in recorder.trace.steps:
    for work in record.work:
        tokens = work.start_position + work.num_tokens
        held = len(record.tables[work.request_id])
        yours = blocks_needed(tokens, 16)
        assert yours == held, f"{tokens} tokens: you say {yours} blocks, the engine holds {held}"
        at_the_end[work.request_id] = (tokens, yours, held)
        compared += 1

print("at the end    tokens  yours  engine")
for request_id, (tokens, yours, held) in at_the_end.items():
    print(f"{request_id:12} {tokens:7} {yours:6} {held:7}")
print(f"compared {compared} times: always the same")

# %% [markdown]
# A detail, for those who add up. In the lesson the first request begins with a prompt of 93 tokens
# and its answer has 144, and yet it ends with 236 tokens in the cache, not 237. The last token ends
# the answer: nothing is computed after it, so its keys and values are never stored.

# %% [markdown]
# ## An open question
#
# You may choose the block size. What would change in the picture of the lesson with blocks of one
# token, and what with blocks of 1,024? Name for each what is gained and what is lost, and say which
# number you would measure before you choose.
#
# There are no points for this one. Write your answer into the next cell; `minipaged solution 00`
# then shows the model answer.

# %% [markdown] open=true
# ### BEGIN SOLUTION
# **Blocks of one token.** No slot is ever empty: a request holds exactly as many slots as it has
# tokens. But a table has one entry for every token, so it is 16 times as long as with blocks of 16,
# the pool is asked at every single step of every request, and attention reads its keys and values
# one token at a time from anywhere in the memory.
#
# **Blocks of 1,024.** A table has one entry, since no text of the tutor is longer, and attention
# reads one unbroken stretch. But every request holds 1,024 slots from its first token on. That is
# the reservation of the older way again: the memory of 1,536 slots has room for one request.
#
# **What to measure.** The empty slots behind the last token: on average about half a block a
# request. For requests of some 200 tokens and blocks of 16 that is about 8 slots in 200, 4 per
# cent; with blocks of 128 it would be about 64. So the lengths of the real requests come first.
# Against it stands what reading many small pieces costs, and that only a measurement on the machine
# in question can tell (lessons 11 and 12).
# ### END SOLUTION
