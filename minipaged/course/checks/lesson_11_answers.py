"""11.4 answers(): addresses, bytes, lines, masks."""

from __future__ import annotations

from minipaged.course.checks.answers import Mistake, Question, answers_check

QUESTIONS = (
    Question(
        "a",
        "an address",
        "Llama-3-8B, blocks of 16, NHD, table [12, 3, 40]: number 5 of head 2 of token 20.",
        53_509,
        (
            Mistake(53_285, "This is the packed layout."),
            Mistake(200_965, "Token 20 is in the second entry of the table."),
            Mistake(20_741, "The table was not asked: entry 1 says block 3."),
            Mistake(6661, "The 8 KV heads are missing: a slot has 8 rows of 128 numbers."),
            Mistake(51_589, "Head 2 comes two rows of 128 numbers behind head 0.", 2000),
        ),
        "Slot, then KV head, then number: ((block * 16 + slot) * 8 + head) * 128 + d.",
    ),
    Question(
        "b",
        "the same, packed",
        "The number of a in the layout packed by x = 8.",
        53_285,
        (
            Mistake(53_509, "This is the other layout."),
            Mistake(53_925, "Between d // x and d % x come the slots of the block."),
            Mistake(53_328, "d // x is 0 and d % x is 5: they do not change places."),
        ),
        "Block, KV head, d // x, slot, d % x, of the lengths 8, 16, 16 and 8 behind the block.",
    ),
    Question(
        "c",
        "in 32 bits",
        "Where block 196,608 of 16,384 numbers begins, computed in 32 bits.",
        -1_073_741_824,
        (
            Mistake(3_221_225_472, "This is right, and 32 bits with a sign end at 2 to the 31."),
            Mistake(1_073_741_824, "The first of the 32 bits is a sign, and it is set."),
            Mistake(-3_221_225_472, "It is the right number less 2 to the 32."),
            Mistake(2_147_483_647, "It does not stop at the largest number: it wraps around."),
            Mistake(1_073_741_823, "It wraps around at 2 to the 31, to the most negative number."),
        ),
        "From 2 to the 31 on, 2 to the 32 is lost.",
    ),
    Question(
        "d",
        "K and V once, or four times",
        "Bytes of K and V of 1,000 tokens in a layer: a program for each query head; each KV head.",
        [16_384_000, 4_096_000],
        (
            Mistake([4_096_000, 16_384_000], "The right two numbers, the other way round."),
            Mistake([8_192_000, 2_048_000], "That is K or V. Both are read."),
            Mistake(
                [16_384_000, 2_048_000], "That is K or V in the second. Both are read there, too."
            ),
            Mistake([4_096_000, 4_096_000], "What four programs load is loaded four times."),
            Mistake([8_192_000, 4_096_000], "Four query heads share a KV head, not two."),
            Mistake([4_096_000, 1_024_000], "A number has 2 bytes, and there are K and V."),
            Mistake([524_288_000, 131_072_000], "That is all 32 layers. Asked for is one of them."),
        ),
        "A token has 8 KV heads of 128 numbers, twice, of 2 bytes each: 4,096 bytes a layer.",
    ),
    Question(
        "e",
        "rows",
        "Rows of the tile of queries for groups of 3, 8 and 24.",
        [16, 16, 32],
        (
            Mistake([4, 8, 32], "`tl.dot` wants sides of 16 at least."),
            Mistake([3, 8, 24], "A tile's side is a power of two, and 16 at least."),
            Mistake([16, 16, 24], "A tile's side is a power of two."),
            Mistake([16, 16, 48], "A tile's side is a power of two."),
            Mistake([16, 32, 32], "8 rows fit into 16."),
        ),
        "The next power of two, and 16 at least.",
    ),
    Question(
        "f",
        "one instruction, one tile",
        "Blocks of 8, K packed: bytes side by side, lines touched, bytes of the tile.",
        [128, 4, 2048],
        (
            Mistake([256, 4, 2048], "A row of 256 bytes lies side by side in NHD only."),
            Mistake([128, 8, 2048], "32 keys are in 4 blocks, and each has a whole line of them."),
            Mistake([512, 4, 2048], "32 keys are in 4 blocks, which lie apart."),
            Mistake([128, 4, 4096], "That is K and V. Asked for is K."),
            Mistake([128, 4, 1024], "A number has 2 bytes."),
            Mistake([128, 1, 2048], "That is one block. The instruction takes keys of 4 blocks."),
            Mistake([64, 8, 2048], "That is for blocks of 4."),
        ),
        "16 bytes a slot lie side by side; 32 keys are in 32 / 8 blocks; a row has 256 bytes.",
    ),
    Question(
        "g",
        "short answers in long blocks",
        "40 tokens in blocks of 128: per cent of the slots that are empty.",
        68.75,
        (
            Mistake(31.25, "This is the share that is used.", 0.1),
            Mistake(88, "This is the number of slots. Which share of 128 is it?", 0.1),
            Mistake(0.6875, "Asked for are per cent.", 0.001),
            Mistake(
                49.6, "This is what is empty on average. Here you know the length exactly.", 0.1
            ),
            Mistake(220, "This is beside what is used. Asked for is the share of all slots.", 0.1),
        ),
        "How many of the 128 slots hold no token, and how many in a hundred is that?",
        0.06,
    ),
    Question(
        "h",
        "right in the interpreter only",
        "head_dim 80: some heads are wrong at times on a GPU, never in the interpreter.",
        "out",
        (
            Mistake(
                "queries", "What was loaded too much would spoil the same scores on every run."
            ),
            Mistake("keys", "What was loaded too much would spoil the same scores on every run."),
            Mistake("scores", "Weights that are too many are so in the interpreter as well."),
        ),
        "Programs that write on each other's places end up right or wrong by who comes last. In "
        "the interpreter it is always the same one.",
    ),
)
CHECK = answers_check(QUESTIONS)
