"""05.4 answers(): samples, copies, beams and what sharing saves."""

from __future__ import annotations

from minipaged.course.checks.answers import Mistake, Question, answers_check

QUESTIONS = (
    Question(
        "a",
        "blocks of five samples",
        "Blocks held once each of 5 samples of a 50-token prompt has written a token of its own; "
        "block size 16.",
        8,
        (
            Mistake(20, "Those are the blocks without sharing. The full blocks are held once."),
            Mistake(4, "That is what is held before anybody has written."),
            Mistake(
                9,
                "One too many: the last to write uses the block in which the prompt ends, and "
                "leaves none behind.",
            ),
            Mistake(7, "Each of the five ends up with one block of its own, the first one too."),
            Mistake(6, "The prompt has 50 // 16 full blocks, and all of them stay shared."),
            Mistake(5, "The full blocks are held as well, once for all samples."),
        ),
        "Full blocks are shared by all; the block that is written is each sample's own.",
    ),
    Question(
        "b",
        "copies off and on a border",
        "[copies with that prompt of 50 tokens, copies with one of 48].",
        [4, 0],
        (
            Mistake([5, 0], "The last of the five is the only holder by then. Does it copy?"),
            Mistake([4, 4], "48 tokens fill their blocks. What is there to copy?"),
            Mistake([5, 5], "Look again at the last holder, and at blocks that are full."),
            Mistake([0, 4], "The wrong way round: a tail is copied while it has room."),
            Mistake([0, 0], "Two samples cannot write position 50 into the same slot."),
            Mistake([1, 0], "One copy serves one sample. How many of the five need one?"),
        ),
        "A copy is made for each holder but the last, of a block that is filled in part.",
    ),
    Question(
        "c",
        "MiB that are copied",
        "MiB of keys and values that are copied for the prompt of 50 tokens, all layers: 131,072 "
        "bytes a token.",
        8,
        (
            Mistake(1, "That is two tokens a copy. A copy moves the whole block."),
            Mistake(2, "That is one copy. How many are made?"),
            Mistake(10, "That is five copies. The last holder makes none."),
            Mistake(0.5, "That is one token a copy. A copy moves the whole block."),
            Mistake(8_388_608, "That is in bytes. A MiB has 1,048,576 of them."),
            Mistake(25, "Those are 50 tokens, four times. Full blocks are not copied."),
            Mistake(8.388608, "That is in units of 10^6 bytes. A MiB has 2^20.", 0.01),
        ),
        "A copy moves all 16 slots of a block, whatever is in them.",
    ),
    Question(
        "d",
        "forks and drops",
        "[forks that are made, beams that are dropped] in a step of width 4 whose parents are "
        "2, 0, 2, 2.",
        [2, 2],
        (
            Mistake(
                [3, 2],
                "Beam 2 goes on itself as well: of its three continuations, how many "
                "need a new table?",
            ),
            Mistake([1, 2], "A beam may be forked more than once. Count the new tables."),
            Mistake([2, 1], "Two of the beams 0 to 3 do not occur among the parents."),
            Mistake([3, 3], "Beams 0 and 2 go on, and one of the three from beam 2 is itself."),
            Mistake([2, 0], "A beam that is nobody's parent has no continuation: it is dropped."),
        ),
        "As many tables begin as end, or the width would change.",
    ),
    Question(
        "e",
        "per cent saved",
        "Per cent of blocks saved at the end: a prompt of 100 tokens, 4 samples of 50 outputs, "
        "block size 16.",
        45,
        (
            Mistake(55, "That is what is still needed. Asked for is what is saved."),
            Mistake(18, "That is the number of blocks. Divide by the blocks without sharing."),
            Mistake(22, "That is how many blocks are held. How many would it be without sharing?"),
            Mistake(0.45, "Give per cent, not a fraction.", 0.001),
            Mistake(
                52.5,
                "That counts 7 shared blocks. The seventh is not full, so each sample ends up "
                "with its own.",
            ),
            Mistake(
                50.3,
                "That is in tokens. The last tokens of the prompt lie in a block that cannot stay "
                "shared.",
                0.05,
            ),
            Mistake(42.5, "One block too many is held: the last to write makes no copy."),
            Mistake(75, "The tokens that they write are not shared, only the prompt is."),
        ),
        "Work out both sums: 4 tables one by one, then full shared blocks and the rest.",
    ),
    Question(
        "f",
        "copies after writes",
        "A copies block 7 to block 9 and writes there, B writes into 7 in the same step. A faulty "
        "engine writes first and copies then. Whose answer may be wrong?",
        "A",
        (
            Mistake("B", "B's token is in block 7, and nobody overwrites it there."),
            Mistake("both", "Block 7 is all right: B's token is in it, as it should be."),
            Mistake(
                "nobody",
                "Follow one slot: A writes its token into block 9. What does the copy do to it?",
            ),
        ),
        "A copy that comes late brings along what was written meanwhile, and covers what it finds.",
    ),
    Question(
        "g",
        "smaller blocks, larger blocks",
        "Slots that the copies move for a prompt of 101 tokens and 4 samples: blocks of 4, 16, 32.",
        [12, 48, 96],
        (
            Mistake([3, 3, 3], "Those are the copies. Each of them moves a whole block."),
            Mistake([16, 64, 128], "The last to write is the only holder by then, and copies not."),
            Mistake([3, 15, 15], "That is the tokens in the block. A copy moves all its slots."),
            Mistake(
                [312, 336, 384],
                "That is every block of the prompt. Only the one that is written has to be copied.",
            ),
            Mistake([4, 16, 32], "That is one copy. How many are made?"),
            Mistake([0, 48, 96], "101 is no multiple of 4."),
            Mistake([96, 48, 12], "The right numbers, the other way round."),
        ),
        "Each writer but the last copies one block, whatever its size: smaller blocks mean smaller "
        "copies, not more of them.",
    ),
)
CHECK = answers_check(QUESTIONS)
