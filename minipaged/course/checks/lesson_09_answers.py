"""09.4 answers(): what is saved and found, what is lost first, how safe a short hash is."""

from __future__ import annotations

from minipaged.course.checks.answers import Mistake, Question, answers_check

QUESTIONS = (
    Question(
        "a",
        "what is left to compute",
        "Block size 16. All prompts begin with the same 1,000 tokens, each goes on with 60 of its "
        "own. The first was served. How many tokens of the second are computed?",
        68,
        (
            Mistake(60, "1,000 is no multiple of 16. What becomes of the tokens in between?"),
            Mistake(1060, "That is the first request. What does the second one find?"),
            Mistake(992, "That is what is found. Asked for is what is left to compute."),
            Mistake(52, "A block that is shared in part only is no hit: round down, not up."),
            Mistake(
                1008, "That is 63 blocks, more than all have in common; and it is what is found."
            ),
        ),
        "A hit is whole blocks of what both prompts have in common.",
    ),
    Question(
        "b",
        "the same prompt again",
        "Block size 16. A prompt of 64 tokens was served, and all its blocks are known. The very "
        "same prompt comes again. How many of its tokens are computed?",
        16,
        (
            Mistake(0, "If nothing is computed, nothing says which token comes next."),
            Mistake(1, "One would be enough to go on, but it stands in a block that others hold."),
            Mistake(64, "Three of the blocks can be taken as they are."),
            Mistake(48, "That is what is found. Asked for is what is left to compute."),
            Mistake(
                15, "Hits are whole blocks. Which block has to be given up, and how long is it?"
            ),
        ),
        "At least one token is left to compute, and hits are whole blocks.",
    ),
    Question(
        "c",
        "a chain without a parent",
        "Block size 4. Known: [1 2 3 4 | 9 9 9 9] in blocks 0 and 1, [5 6 7 8 | 3 3 3 3] in blocks "
        "2 and 3. An index whose hashes cover each block's own tokens only is asked for the prompt "
        "5 6 7 8 9 9 9 9 1. Which blocks does it return?",
        [2, 1],
        (
            Mistake([2], "That is right of an index with a chain. This one has none."),
            Mistake([], "The prompt's first block is known, whatever comes behind it."),
            Mistake([0, 1], "Block 0 holds other tokens than the prompt begins with."),
            Mistake([2, 3], "Block 3 holds 3 3 3 3. What does the prompt go on with?"),
            Mistake(
                [1, 2], "The right two, but a table has its blocks in the order of the tokens."
            ),
            Mistake((2, 1), "The right two, but a list is asked for."),
        ),
        "Go through the prompt block by block and ask for its own tokens only.",
    ),
    Question(
        "d",
        "what is handed out next",
        "A pool of 6. A holds [0, 1, 2], all known. B holds [3, 4], and only 3 is known. The queue "
        "is 5. A finishes, then B. Which ids does allocate(3) return?",
        [4, 5, 2],
        (
            Mistake(
                [4, 5, 0], "A table is freed from its end, so that its beginning lasts longest."
            ),
            Mistake([5, 2, 1], "A block without a hash goes to the front, not to the end."),
            Mistake([5, 4, 2], "A block without a hash goes to the front, before those queued."),
            Mistake([4, 3, 0], "Known blocks go to the end of the queue."),
            Mistake([3, 4, 0], "That is the queue of lesson 02, where no block is known."),
            Mistake([4, 5, 3], "A was freed before B, so A's blocks are the next to go."),
            Mistake(
                [4, 2, 1], "Block 5 waited on the queue already, and known blocks go behind it."
            ),
        ),
        "Without a hash to the front, with one to the end, and of a table the tail first.",
    ),
    Question(
        "e",
        "free blocks that a request needs",
        "A request needs 9 blocks. 4 of them are hits: 1 is held by another request, 3 by nobody. "
        "How many blocks must be free so that it can enter?",
        8,
        (
            Mistake(5, "A hit that nobody holds stands on the free queue and is taken from there."),
            Mistake(9, "The hit that another request holds is not on the free queue."),
            Mistake(
                6, "It is the other way round: the held hit is for nothing, the idle ones not."
            ),
            Mistake(3, "Those are the idle hits. The new blocks have to be free as well."),
        ),
        "New blocks and idle hits both come off the free queue.",
    ),
    Question(
        "f",
        "64 bits of a hash",
        "By the birthday bound n² / 2^65: the probability, in percent, that two of 10^8 blocks "
        "have the same 64-bit hash.",
        100 * 1e16 / 2**65,
        (
            Mistake(100 * 1e18 / 2**65, "That is for ten times as many blocks.", 0.05),
            Mistake(1e16 / 2**65, "That is the probability itself. Asked for are percent.", 1e-5),
            Mistake(
                0.271, "A tenth of the blocks has a hundredth of the pairs, not a tenth.", 0.005
            ),
            Mistake(100 * 1e16 / 2**64, "The bound has 2^65: half of all ordered pairs.", 2e-3),
            Mistake(
                100 * 1e8 / 2**64, "That is one block against all the others, not all pairs.", 1e-10
            ),
        ),
        "The number of pairs counts, and it grows with the square of the number of blocks.",
        0.0005,
    ),
    Question(
        "g",
        "prompts that never repeat",
        "A pool of 8. Three different prompts came and went one by one, and each left two known "
        "blocks. [Blocks that can be handed out, known ones that are lost when 5 are].",
        [8, 3],
        (
            Mistake([2, 3], "A known block that nobody holds stands on the free queue, too."),
            Mistake([2, 0], "A known block that nobody holds stands on the free queue, too."),
            Mistake([2, 2], "A known block that nobody holds stands on the free queue, too."),
            Mistake([8, 5], "Two blocks were never used. Where on the queue are they?"),
            Mistake([8, 6], "A block is forgotten when it is handed out itself, not before."),
            Mistake([8, 0], "Only two blocks have nothing to lose. What are the other three?"),
            Mistake([6, 3], "The blocks that were never used are free as well."),
            Mistake([8, 2], "That is how many are not known. How many of the 5 are?"),
        ),
        "Idle known blocks are free: they are handed out last, and forgotten only then.",
    ),
)
CHECK = answers_check(QUESTIONS)
